# SPDX-License-Identifier: MIT
"""A10: expenses in several currencies: the rates are fetched together, once each, then the totals are computed."""
import asyncio
import time

KNOWN = {"USD": 92.5, "EUR": 100.1, "CNY": 12.7}
EXPENSES = [("hotel", "EUR", 120), ("taxi", "EUR", 18.5), ("lunch", "CNY", 60), ("conference", "USD", 300)]


async def fetch_rate(currency):
    await asyncio.sleep(1)
    return KNOWN[currency]


async def main():
    start = time.monotonic()
    total = 0
    for currency, rate in zip(KNOWN, await asyncio.gather(*map(fetch_rate, KNOWN))):
        amount = sum(amount for _, c, amount in EXPENSES if c == currency)
        print(f"{currency} {amount:7.2f} at {rate:5.1f} = {amount * rate:9.2f} INR")
        total += amount * rate
    print(f"total {total:28.2f} INR, one wait of {time.monotonic() - start:.1f} s")


asyncio.run(main())
