"""The Python client of tests/interop_test.py: runs the steps of scenario.txt, which says what they mean.

Usage: client.py SOCKET SCRIPT REPETITIONS blocking|asyncio

Prints "ready", waits for a line, runs the script so often and prints a line for each step. With "asyncio" eight
repetitions run at once, as tasks of one loop.
"""
import array
import asyncio
import sys

import pickd

AT_ONCE = 8
TEXTS = {"model": "model", "adapter": "adapter", "salt": "salt", "session": "session_id", "fairness": "fairness_id",
         "request": "request_id"}
NUMBERS = {"prompt_tokens": "prompt_tokens", "expected": "expected_output_tokens", "endpoints_max": "endpoints_max",
           "priority": "priority", "slo_ttft_ms": "slo_ttft_ms", "slo_itl_ms": "slo_itl_ms"}
COUNTS = {"prompt": "prompt_tokens", "cached": "cached_tokens", "output": "output_tokens"}


def made(seed, count):
    x = seed
    for _ in range(count):
        x = (x * 1103515245 + 12345) & 0xFFFFFFFF
        yield x


def text_of(value):
    seed, size, *cuts = value.split(":")
    text = bytes(97 + (x >> 16) % 26 for x in made(int(seed), int(size)))
    places = [0, *(int(cut) for cut in cuts[0].split(",")), len(text)] if cuts else [0, len(text)]
    return [text[begin:end] for begin, end in zip(places, places[1:])]


def request_of(pairs):
    request = pickd.Request(extras=[], attributes=[])
    for key, value in pairs:
        first, _, second = value.partition(":")
        if key in TEXTS:
            setattr(request, TEXTS[key], value)
        elif key in NUMBERS:
            setattr(request, NUMBERS[key], float(value) if key.startswith("slo") else int(value))
        elif key == "text":
            request.text = text_of(value)
        elif key == "ids":
            request.token_ids = array.array("I", (x >> 8 for x in made(int(first), int(second))))
        elif key == "extra":
            digest = bytes((x >> 16) & 255 for x in made(int(second), 32))
            request.extras.append(pickd.Extra(int(first), digest))
        elif key == "subset":
            request.subset = [name for name in value.split(",") if name]
        elif key == "attribute":
            request.attributes.append((first, second))
        elif key in ("stream", "dry_run"):
            setattr(request, key, True)
        else:
            raise ValueError(key)
    return request


def steps_of(path):
    """(name, request) for each pick, (name, kind, fields) for each report."""
    with open(path, encoding="utf-8") as file:
        for line in file:
            words = line.partition("->")[0].split()
            if not words or words[0] == "#" or line.startswith("#"):
                continue
            if words[0] == "pick":
                yield words[1], request_of(word.split("=", 1) for word in words[2:])
            else:
                fields = {COUNTS.get(key, key): value if key == "endpoint" else int(value)
                          for key, value in (word.split("=", 1) for word in words[3:])}
                yield words[1], words[2], fields


def said(name, pick):
    return (f"pick {name} status=0 winner={pick.name} address={pick.address} match={pick.endpoints[0].match_tokens} "
            f"prompt_tokens={pick.prompt_tokens} cut={int(pick.cut)} degraded={int(pick.degraded)} "
            f"endpoints={len(pick.endpoints)}")


async def run(steps, pick, report):
    """One repetition; its lines together."""
    lines, tickets = [], {}
    for name, *more in steps:
        if len(more) == 1:
            try:
                answer = await pick(more[0])
                tickets[name] = answer.ticket
                lines.append(said(name, answer))
            except pickd.Error as error:
                lines.append(f"pick {name} status={-error.errno}")
        else:
            kind, fields = more
            try:
                await report(pickd.Report(tickets[name], pickd.ReportKind[kind.upper()], **fields))
                status = 0
            except pickd.Error as error:
                status = -error.errno
            lines.append(f"report {name} {kind} status={status}")
    return "\n".join(lines)


def ready():
    print("ready", flush=True)
    sys.stdin.readline()


async def by_tasks(socket, steps, repetitions):
    async with pickd.AsyncClient(socket) as client:
        ready()
        left = asyncio.Semaphore(AT_ONCE)

        async def one():
            async with left:
                print(await run(steps, client.pick, client.report_and_wait))

        await asyncio.gather(*(one() for _ in range(repetitions)))


async def by_calls(socket, steps, repetitions):
    with pickd.Client(socket) as client:
        ready()

        async def pick(request):
            return client.pick(request)

        async def report(told):
            client.report_and_wait(told)

        for _ in range(repetitions):
            print(await run(steps, pick, report))


def main():
    socket, script, repetitions, mode = sys.argv[1:]
    steps = list(steps_of(script))
    asyncio.run({"blocking": by_calls, "asyncio": by_tasks}[mode](socket, steps, int(repetitions)))


if __name__ == "__main__":
    main()
