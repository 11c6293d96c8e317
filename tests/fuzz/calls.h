// SPDX-License-Identifier: Apache-2.0 OR MIT
// What the files of the random calls share: decisions, and the objects that there are.
#ifndef CALLS_H
#define CALLS_H

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KINDS_OF_EACH = 4, ARENA_BYTES = 1 << 20 };

extern struct fi_info *info;
extern struct fid_fabric *fabric;
extern struct fid_domain *domain;
extern struct fid_ep *eps[KINDS_OF_EACH];
extern struct fid_cq *cqs[KINDS_OF_EACH];
extern struct fid_av *avs[KINDS_OF_EACH];
extern struct fid_cntr *counters[KINDS_OF_EACH];
extern struct fid_mr *regions[KINDS_OF_EACH];

uint64_t number(void);
uint64_t below(uint64_t end);
bool one_in(uint64_t count);
size_t place(void);
void *context(void);
size_t length(void);
char *buffer(size_t bytes);
fi_addr_t address(void);
uint64_t flags(void);

// An answer is a count, or the error of a call, negative, as fi_errno(3) numbers them; anything
// else ends the process with a finding.
ssize_t checked(ssize_t answer, const char *call);
#define CHECKED(call) checked((ssize_t)(call), #call)
// The same where nothing depends on the answer.
#define TRY(call) ((void)CHECKED(call))

// One call with the objects of others.c. At the end all of them close, those that use the others'
// objects first, and those that are used last: false if one does not.
void do_other(void);
bool close_users(void);
bool close_used(void);

#endif
