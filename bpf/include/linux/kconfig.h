/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* BCC includes this file before everything else: the few kernel types that an XDP program and
   BCC's helpers need. */
#pragma once

#define CONFIG_BPF_SYSCALL 1

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char s8;
typedef short s16;
typedef int s32;
typedef long long s64;
typedef _Bool bool;
typedef unsigned long size_t;
typedef unsigned long uintptr_t;
typedef int pid_t;

#define true 1
#define false 0

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
