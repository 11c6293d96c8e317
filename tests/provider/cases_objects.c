// SPDX-License-Identifier: Apache-2.0 OR MIT
// Objects: their order of opening and closing, names, options, registered memory, event queues,
// what is not offered.
#include "harness.h"


static struct host host;
static struct side a, b;

static void objects_in_use_are_busy(void)
{
    open_pair(&host, &a, &b, NULL);
    ANSWERS(-FI_EBUSY, fi_close(&host.fabric->fid));
    ANSWERS(-FI_EBUSY, fi_close(&host.domain->fid));
    ANSWERS(-FI_EBUSY, fi_close(&a.cq->fid));
    ANSWERS(-FI_EBUSY, fi_close(&a.av->fid));
    close_pair(&host, &a, &b);
}

static void a_name_needs_room(void)
{
    open_pair(&host, &a, &b, NULL);
    size_t length = 0;
    char name[64];
    ANSWERS(-FI_ETOOSMALL, fi_getname(&a.ep->fid, NULL, &length));
    CHECK(length == a.name_bytes && length <= 64, "the name has %zu bytes", length);
    length = 3;
    ANSWERS(-FI_ETOOSMALL, fi_getname(&a.ep->fid, name, &length));
    length = sizeof(name);
    OK(fi_getname(&a.ep->fid, name, &length));
    CHECK(length == a.name_bytes && !memcmp(name, a.name, length), "the name changed");
    CHECK(memcmp(a.name, b.name, a.name_bytes), "two endpoints have one name");
    close_pair(&host, &a, &b);
}

static void an_endpoint_must_be_bound_and_enabled_first(void)
{
    struct fid_ep *ep;
    char byte = 0;
    open_host(&host, NULL);
    OK(fi_endpoint(host.domain, host.info, &ep, NULL));
    ANSWERS(-FI_ENOAV, fi_enable(ep));
    ANSWERS(-FI_EOPBADSTATE, fi_send(ep, &byte, 1, NULL, 0, NULL));
    ANSWERS(-FI_EOPBADSTATE, fi_trecv(ep, &byte, 1, NULL, FI_ADDR_UNSPEC, 0, 0, NULL));
    OK(fi_close(&ep->fid));
    close_host(&host);
}

static void a_binding_is_checked(void)
{
    struct host stranger;
    struct side theirs;
    open_pair(&host, &a, &b, NULL);
    open_host(&stranger, NULL);
    struct fid_ep *ep;
    OK(fi_endpoint(host.domain, host.info, &ep, NULL));
    open_side(&stranger, &theirs);
    ANSWERS(-FI_EDOMAIN, fi_ep_bind(ep, &theirs.cq->fid, FI_TRANSMIT));
    ANSWERS(-FI_EDOMAIN, fi_ep_bind(ep, &theirs.av->fid, 0));
    ANSWERS(-FI_EINVAL, fi_ep_bind(ep, &a.cq->fid, 0));
    ANSWERS(-FI_EBADFLAGS, fi_ep_bind(ep, &a.cq->fid, FI_TRANSMIT | FI_PEEK));
    ANSWERS(-FI_EINVAL, fi_ep_bind(ep, &host.domain->fid, 0));
    OK(fi_close(&ep->fid));
    close_side(&theirs);
    close_host(&stranger);
    close_pair(&host, &a, &b);
}

static void options_are_kept(void)
{
    open_pair(&host, &a, &b, NULL);
    size_t value = 12345, length = sizeof(value);
    OK(fi_setopt(&a.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, sizeof(value)));
    value = 0;
    OK(fi_getopt(&a.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, &length));
    CHECK(value == 12345 && length == sizeof(value), "%zu", value);
    length = 1;
    ANSWERS(-FI_ETOOSMALL,
            fi_getopt(&a.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, &length));
    ANSWERS(-FI_EINVAL, fi_setopt(&a.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, 1));
    ANSWERS(-FI_ENOPROTOOPT, fi_setopt(&a.ep->fid, FI_OPT_ENDPOINT, 9999, &value, sizeof(value)));
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    CHECK(fi_tx_size_left(a.ep) > 0 && fi_rx_size_left(a.ep) > 0, "nothing can be posted");
    close_pair(&host, &a, &b);
}

static void memory_is_registered_under_its_key(void)
{
    struct fid_mr *one, *two;
    char buffer[64];
    struct iovec pieces[2] = {{buffer, 8}, {buffer + 32, 8}};
    struct fi_mr_attr attr = {
        .mr_iov = pieces, .iov_count = 2, .access = FI_SEND, .requested_key = 8};
    open_host(&host, NULL);
    OK(fi_mr_reg(host.domain, buffer, sizeof(buffer), FI_SEND | FI_RECV, 0, 7, 0, &one, NULL));
    CHECK(fi_mr_key(one) == 7 && fi_mr_desc(one), "key or description is missing");
    ANSWERS(-FI_ENOKEY, fi_mr_regv(host.domain, pieces, 2, FI_SEND, 0, 7, 0, &two, NULL));
    ANSWERS(-FI_EBUSY, fi_close(&host.domain->fid));
    OK(fi_close(&one->fid));
    OK(fi_mr_regv(host.domain, pieces, 2, FI_SEND, 0, 7, 0, &one, NULL));
    OK(fi_mr_regattr(host.domain, &attr, 0, &two));
    CHECK(fi_mr_key(two) == 8, "another key than asked for");
    OK(fi_close(&one->fid));
    OK(fi_close(&two->fid));
    OK(fi_mr_reg(host.domain, NULL, UINTPTR_MAX, FI_REMOTE_READ, 0, 9, 0, &one, NULL));
    OK(fi_close(&one->fid));
    close_host(&host);
}

static void events_are_read_in_order(void)
{
    struct fi_eq_attr attr = {.wait_obj = FI_WAIT_UNSPEC, .flags = FI_WRITE};
    struct fid_eq *eq;
    struct fi_eq_entry entry = {0}, back;
    uint32_t event = 99;
    open_host(&host, NULL);
    OK(fi_eq_open(host.fabric, &attr, &eq, NULL));
    ANSWERS(-FI_EAGAIN, fi_eq_read(eq, &event, &back, sizeof(back), 0));
    for (uint64_t index = 0; index < 3; index++) {
        entry.data = index;
        ANSWERS(sizeof(entry), fi_eq_write(eq, FI_NOTIFY, &entry, sizeof(entry), 0));
    }
    ANSWERS(-FI_ETOOSMALL, fi_eq_read(eq, &event, &back, 1, 0));
    ANSWERS(sizeof(back), fi_eq_read(eq, &event, &back, sizeof(back), FI_PEEK));
    for (uint64_t index = 0; index < 3; index++) {
        ANSWERS(sizeof(back), fi_eq_sread(eq, &event, &back, sizeof(back), 1000, 0));
        CHECK(event == FI_NOTIFY && back.data == index, "event %u with %llu", event,
              (unsigned long long)back.data);
    }
    int64_t start = now_ms();
    ANSWERS(-FI_EAGAIN, fi_eq_sread(eq, &event, &back, sizeof(back), 50, 0));
    CHECK(now_ms() - start >= 45, "the wait was too short");
    ANSWERS(-FI_EBUSY, fi_close(&host.fabric->fid));
    OK(fi_close(&eq->fid));
    close_host(&host);
}

static void what_is_not_offered_says_so(void)
{
    struct fid_pep *passive;
    struct fid_ep *other;
    open_pair(&host, &a, &b, NULL);
    ANSWERS(-FI_ENOSYS, fi_passive_ep(host.fabric, host.info, &passive, NULL));
    ANSWERS(-FI_ENOSYS, fi_scalable_ep(host.domain, host.info, &other, NULL));
    ANSWERS(-FI_ENOSYS, fi_connect(a.ep, b.name, NULL, 0));
    close_pair(&host, &a, &b);
}

static void the_flags_of_operations_can_be_changed(void)
{
    uint64_t flags = FI_TRANSMIT | FI_DELIVERY_COMPLETE;
    open_pair(&host, &a, &b, NULL);
    OK(fi_control(&a.ep->fid, FI_SETOPSFLAG, &flags));
    flags = FI_TRANSMIT;
    OK(fi_control(&a.ep->fid, FI_GETOPSFLAG, &flags));
    CHECK(flags == FI_DELIVERY_COMPLETE, "flags %#llx", (unsigned long long)flags);
    flags = FI_RECV;
    OK(fi_control(&a.ep->fid, FI_GETOPSFLAG, &flags));
    CHECK(flags == 0, "flags of receives %#llx", (unsigned long long)flags);
    flags = FI_TRANSMIT | FI_RECV;
    ANSWERS(-FI_EINVAL, fi_control(&a.ep->fid, FI_SETOPSFLAG, &flags));
    flags = FI_TRANSMIT | FI_MULTI_RECV;
    ANSWERS(-FI_EBADFLAGS, fi_control(&a.ep->fid, FI_SETOPSFLAG, &flags));
    ANSWERS(-FI_EINVAL, fi_control(&a.ep->fid, FI_GETOPSFLAG, NULL));
    close_pair(&host, &a, &b);
}

static void an_endpoint_is_named_before_it_is_enabled_and_not_after(void)
{
    struct host host;
    struct fid_ep *ep;
    struct side a, b;
    char name[64];
    size_t length = sizeof(name);
    open_pair(&host, &a, &b, NULL);
    memcpy(name, a.name, a.name_bytes);
    memset(name + 2, 0, 2); // any port
    OK(fi_endpoint(host.domain, host.info, &ep, NULL));
    ANSWERS(-FI_EINVAL, fi_setname(&ep->fid, name, 3));
    ANSWERS(-FI_EINVAL, fi_setname(&ep->fid, NULL, a.name_bytes));
    OK(fi_setname(&ep->fid, name, a.name_bytes));
    OK(fi_ep_bind(ep, &a.av->fid, 0));
    OK(fi_ep_bind(ep, &a.cq->fid, FI_TRANSMIT | FI_RECV));
    OK(fi_enable(ep));
    OK(fi_getname(&ep->fid, name, &length));
    CHECK(length == a.name_bytes && memcmp(name + 4, a.name + 4, 4) == 0, "another address");
    ANSWERS(-FI_EOPBADSTATE, fi_setname(&ep->fid, name, length));
    OK(fi_close(&ep->fid));
    close_pair(&host, &a, &b);
}

static void objects_that_are_not_offered_say_so(void)
{
    struct fid_ep *ep;
    struct fid_stx *stx;
    struct fid_av *av;
    struct fi_av_attr av_attr = {.type = FI_AV_TABLE, .name = "shared"};
    open_pair(&host, &a, &b, NULL);
    ANSWERS(-FI_ENOSYS, fi_scalable_ep(host.domain, host.info, &ep, NULL));
    ANSWERS(-FI_ENOSYS, fi_srx_context(host.domain, host.info->rx_attr, &ep, NULL));
    ANSWERS(-FI_ENOSYS, fi_stx_context(host.domain, host.info->tx_attr, &stx, NULL));
    ANSWERS(-FI_ENOSYS, fi_av_open(host.domain, &av_attr, &av, NULL));
    ANSWERS(-FI_ENOSYS, fi_ep_alias(a.ep, &ep, 0));
    close_pair(&host, &a, &b);
}

const struct test_case object_cases[] = {
    {"objects_in_use_are_busy", objects_in_use_are_busy},
    {"a_name_needs_room", a_name_needs_room},
    {"an_endpoint_must_be_bound_and_enabled_first", an_endpoint_must_be_bound_and_enabled_first},
    {"a_binding_is_checked", a_binding_is_checked},
    {"options_are_kept", options_are_kept},
    {"memory_is_registered_under_its_key", memory_is_registered_under_its_key},
    {"events_are_read_in_order", events_are_read_in_order},
    {"what_is_not_offered_says_so", what_is_not_offered_says_so},
    {"the_flags_of_operations_can_be_changed", the_flags_of_operations_can_be_changed},
    {"an_endpoint_is_named_before_it_is_enabled_and_not_after",
     an_endpoint_is_named_before_it_is_enabled_and_not_after},
    {"objects_that_are_not_offered_say_so", objects_that_are_not_offered_say_so},
    {NULL, NULL},
};
