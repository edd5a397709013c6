/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Empty: BCC's helpers include it, an XDP program uses nothing of it. */
