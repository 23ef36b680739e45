/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef HVP_VERSION_H
#define HVP_VERSION_H

/* Of the host programs. The wire formats have versions of their own. */
#define HVP_VERSION "0.1.0"

#endif /* HVP_VERSION_H */
