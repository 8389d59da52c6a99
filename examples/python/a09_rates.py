# SPDX-License-Identifier: MIT
"""A9: exchange rates, a second each: one by one, then together; an unknown currency is an error that names it."""
import asyncio
import time

KNOWN = {"USD": 92.5, "EUR": 100.1, "CNY": 12.7}


async def fetch_rate(currency):
    await asyncio.sleep(1)
    if currency not in KNOWN:
        raise LookupError(f"no rate for {currency}")
    return KNOWN[currency]


def show(rates, start):
    for currency, rate in zip(KNOWN, rates):
        print(currency, rate, end="  ")
    print(f"after {time.monotonic() - start:.1f} s")


async def main():
    start = time.monotonic()
    show([await fetch_rate(currency) for currency in KNOWN], start)
    start = time.monotonic()
    show(await asyncio.gather(*map(fetch_rate, KNOWN)), start)
    try:
        await asyncio.gather(*map(fetch_rate, ["USD", "XXX", "CNY"]))
    except LookupError as error:
        print("error:", error)


asyncio.run(main())
