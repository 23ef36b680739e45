// SPDX-License-Identifier: GPL-2.0-or-later
/* mc146818.c - the PC's real-time clock. Registers: MC146818A data sheet. */
#include <time.h>

#include "mc146818.h"

#define INDEX	   0
#define INDEX_MASK 0x7f /* bit 7 is the PC's NMI mask */

#define REG_A_32KHZ_1024HZ 0x26 /* never "update in progress" */
#define REG_B_24H	   0x02 /* BCD, 24 hours */
#define REG_D_VALID	   0x80 /* the battery is good */

static uint8_t bcd(int value)
{
	return (uint8_t)(value / 10 % 10 << 4 | value % 10);
}

static uint8_t read_register(uint8_t index)
{
	time_t now = time(NULL);
	struct tm tm;

	gmtime_r(&now, &tm);
	switch (index) {
	case 0x00: return bcd(tm.tm_sec);
	case 0x02: return bcd(tm.tm_min);
	case 0x04: return bcd(tm.tm_hour);
	case 0x06: return bcd(tm.tm_wday + 1);
	case 0x07: return bcd(tm.tm_mday);
	case 0x08: return bcd(tm.tm_mon + 1);
	case 0x09: return bcd(tm.tm_year % 100);
	case 0x0a: return REG_A_32KHZ_1024HZ;
	case 0x0b: return REG_B_24H;
	case 0x0d: return REG_D_VALID;
	case MC146818_CENTURY: return bcd((tm.tm_year + 1900) / 100);
	}
	return 0;
}

static uint32_t mc146818_in(void *dev, struct vcpu *vcpu, uint16_t offset, unsigned int size)
{
	struct mc146818 *rtc = dev;

	(void)vcpu;
	if (size != 1)
		return UINT32_MAX;
	/* The index register cannot be read on a PC. */
	return offset == INDEX ? 0xff : read_register(rtc->index);
}

static void mc146818_out(void *dev, struct vcpu *vcpu, uint16_t offset, unsigned int size,
			 uint32_t value)
{
	struct mc146818 *rtc = dev;

	(void)vcpu;
	if (offset == INDEX && size == 1)
		rtc->index = value & INDEX_MASK;
}

const struct port_ops mc146818_ops = {
	.in = mc146818_in,
	.out = mc146818_out,
};
