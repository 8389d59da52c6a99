/* SPDX-License-Identifier: MIT */
/* The program that is started: it does nothing. */

int main(void)
{
        return 0;
}
