"""Asks pickd for an endpoint and reports on it: pick.py MODEL PROMPT"""
import sys

import pickd


def main() -> int:
    model, prompt = sys.argv[1:]
    with pickd.Client() as client:  # $PICKD_SOCKET, else /run/pickd/pickd.sock
        try:
            pick = client.pick(pickd.Request(model=model, text=prompt), timeout=0.1)
        except pickd.Error as error:
            print(f"{error}: HTTP status {pickd.http_status(error)}", file=sys.stderr)
            return 1
        print(f"{pick.address} ({pick.reason.name.lower()}), "
              f"{pick.endpoints[0].match_tokens} of {pick.prompt_tokens} tokens cached")

        # ... send the request there, or to the next of pick.endpoints where that fails ...

        client.report(pickd.Report(pick.ticket, pickd.ReportKind.DONE, output_tokens=12))
    return 0


if __name__ == "__main__":
    sys.exit(main())
