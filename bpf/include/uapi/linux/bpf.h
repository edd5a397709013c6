/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Empty: BCC brings its own bpf.h, and the system's clashes with it. */
