"""Measures what a pick with its report costs in an asyncio loop, and in a thread. No test."""
import asyncio
import time

import pickd
from daemon import Daemon, prompt
from pickd import Report, ReportKind, Request

PICKS = 50000


def told(name, began, cpu_began, picks):
    print(f"{name:>6}   {(time.perf_counter() - began) / picks * 1e6:9.1f}   "
          f"{(time.process_time() - cpu_began) / picks * 1e6:14.1f}")


async def by_tasks(socket, requests):
    async with pickd.AsyncClient(socket) as client:
        async def one(count):
            for at in range(count):
                pick = await client.pick(requests[at % len(requests)])
                client.report(Report(pick.ticket, ReportKind.DONE))

        for tasks in (1, 32, 1000, 10000):
            count = max(PICKS // tasks, 1)
            began, cpu_began = time.perf_counter(), time.process_time()
            await asyncio.gather(*(one(count) for _ in range(tasks)))
            told(tasks, began, cpu_began, count * tasks)


def by_thread(socket, requests):
    with pickd.Client(socket) as client:
        began, cpu_began = time.perf_counter(), time.process_time()
        for at in range(PICKS):
            pick = client.pick(requests[at % len(requests)])
            client.report(Report(pick.ticket, ReportKind.DONE))
        told("thread", began, cpu_began, PICKS)


def main():
    daemon = Daemon()
    try:
        requests = [Request(model="m", text=prompt(seed, 1000)) for seed in range(100)]
        print(" tasks   us a pick   CPU us a pick")
        asyncio.run(by_tasks(daemon.socket, requests))
        by_thread(daemon.socket, requests)
    finally:
        daemon.close()


if __name__ == "__main__":
    main()
