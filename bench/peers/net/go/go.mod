// SPDX-License-Identifier: MIT
module peers

go 1.19
