// SPDX-License-Identifier: Apache-2.0 OR MIT
// Weft as a peer: under lnx, the provider of libfabric that links several others, which then
// matches the messages.
#include "harness.h"

#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static struct host host;
static struct side a, b;

// Opens the objects above the endpoints, linking what `links` says; skips the case where this
// library cannot.
static void open_linked(const char *links)
{
    struct fi_info *hints = fi_allocinfo();
    uint32_t version = fi_version();
    CHECK(hints, "fi_allocinfo gave nothing");
    setenv("FI_LNX_PROV_LINKS", links, 1);
    memset(&host, 0, sizeof(host));
    hints->fabric_attr->prov_name = strdup("lnx");
    hints->ep_attr->type = FI_EP_RDM;
    hints->caps = FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE;
    hints->domain_attr->av_type = FI_AV_TABLE;
    int answer = fi_getinfo(version, NULL, NULL, 0, hints, &host.info);
    fi_freeinfo(hints);
    if (FI_VERSION_LT(version, FI_VERSION(2, 3)))
        skip("libfabric %u.%u has no Peer API that Weft knows", FI_MAJOR(version),
             FI_MINOR(version));
    if (answer != 0)
        skip("this library does not link %s: %s", links, fi_strerror(-answer));
    OK(fi_fabric(host.info->fabric_attr, &host.fabric, NULL));
    OK(fi_domain(host.fabric, host.info, &host.domain, NULL));
}

static void open_linked_pair(const char *links)
{
    open_linked(links);
    open_side(&host, &a);
    open_side(&host, &b);
    introduce(&a, b.name, &a.other);
    introduce(&b, a.name, &b.other);
}

// One message from a to b, posted for before or after it comes.
static void exchange(size_t length, bool unexpected, unsigned seed)
{
    unsigned char *out = malloc(length + 1), *in = calloc(1, length + 1);
    fill(out, length, seed);
    if (!unexpected)
        OK(fi_trecv(b.ep, in, length, NULL, b.other, seed, 0, in));
    POST(&a, &b, fi_tsend(a.ep, out, length, NULL, a.other, seed, out));
    if (unexpected) {
        progress_for(&b, 20);
        OK(fi_trecv(b.ep, in, length, NULL, FI_ADDR_UNSPEC, seed, 0, in));
    }
    struct fi_cq_tagged_entry entry = next_entry(&b, &a);
    CHECK(entry.op_context == in && (entry.flags & FI_TAGGED), "another completion");
    CHECK(entry.len == length, "%zu bytes instead of %zu", entry.len, length);
    check_filled(in, length, seed);
    CHECK(next_entry(&a, &b).op_context == out, "another send is complete");
    free(in);
    free(out);
}

static void a_linked_peer_carries_tagged_messages_of_every_length(void)
{
    static const size_t lengths[] = {0, 1, 64, 4096, 100000, 3 << 20};
    open_linked_pair("weft");
    for (unsigned round = 0; round < 2; round++)
        for (unsigned index = 0; index < sizeof(lengths) / sizeof(lengths[0]); index++)
            exchange(lengths[index], round, 10 * round + index);
    close_pair(&host, &a, &b);
}

static void a_linked_peer_reports_what_is_cut_and_carries_data(void)
{
    unsigned char out[256], in[100];
    open_linked_pair("weft");
    fill(out, sizeof(out), 1);
    OK(fi_trecv(b.ep, in, sizeof(in), NULL, b.other, 1, 0, in));
    POST(&a, &b, fi_tinjectdata(a.ep, out, sizeof(out), 77, a.other, 1));
    struct fi_cq_err_entry error = next_error(&b, &a);
    CHECK(error.err == FI_ETRUNC && error.op_context == in && error.olen == 156, "error %d, %zu",
          error.err, error.olen);
    check_filled(in, sizeof(in), 1);
    OK(fi_trecv(b.ep, in, sizeof(in), NULL, b.other, 2, 0, in));
    POST(&a, &b, fi_tinjectdata(a.ep, out, 50, 78, a.other, 2));
    struct fi_cq_tagged_entry entry = next_entry(&b, &a);
    CHECK(entry.len == 50 && entry.data == 78 && (entry.flags & FI_REMOTE_CQ_DATA), "data %llu",
          (unsigned long long)entry.data);
    close_pair(&host, &a, &b);
}

static void messages_that_a_linked_peer_keeps_are_in_order_and_can_be_discarded(void)
{
    uint32_t in[3] = {0};
    struct fi_context context[3];
    open_linked_pair("weft");
    for (uint32_t number = 1; number <= 3; number++)
        POST(&a, &b, fi_tinject(a.ep, &number, 4, a.other, 5));
    progress_for(&b, 20);
    struct fi_msg_tagged peek = {.addr = FI_ADDR_UNSPEC, .tag = 5, .context = &context[0]};
    OK(fi_trecvmsg(b.ep, &peek, FI_PEEK | FI_DISCARD));
    CHECK(next_entry(&b, &a).op_context == &context[0], "the peek is not answered");
    for (int index = 1; index < 3; index++) {
        OK(fi_trecv(b.ep, &in[index], 4, NULL, FI_ADDR_UNSPEC, 5, 0, &in[index]));
        CHECK(next_entry(&b, &a).op_context == &in[index], "another completion");
        CHECK(in[index] == (uint32_t)index + 1, "message %u instead of %d", in[index], index + 1);
    }
    close_pair(&host, &a, &b);
}

// The owner of the receives calls Weft for a message that its parent has kept.
static void a_child_of_a_linked_process_is_refused_and_harms_nothing(void)
{
    int status = 0;
    uint32_t out = 7, in = 0, theirs = 0;
    open_linked_pair("weft");
    POST(&a, &b, fi_tinject(a.ep, &out, 4, a.other, 5));
    progress_for(&b, 20);
    pid_t child = fork();
    if (child == 0) {
        (void)fi_tinject(a.ep, &out, 4, a.other, 6);
        (void)fi_trecv(b.ep, &theirs, 4, NULL, FI_ADDR_UNSPEC, 5, 0, &theirs);
        _exit(theirs == 0 ? 0 : 1);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0, "the child ended with %#x", status);
    OK(fi_trecv(b.ep, &in, 4, NULL, FI_ADDR_UNSPEC, 5, 0, &in));
    CHECK(next_entry(&b, &a).op_context == &in && in == 7, "%u instead of 7", in);
    close_pair(&host, &a, &b);
}

// Sends itself whole to the other process and takes the other's name.
static void exchange_names(int socket, struct side *side)
{
    char name[sizeof(side->name)];
    CHECK(write(socket, side->name, side->name_bytes) == (ssize_t)side->name_bytes,
          "the name is not sent");
    CHECK(recv(socket, name, side->name_bytes, MSG_WAITALL) == (ssize_t)side->name_bytes,
          "no name came");
    introduce(side, name, &side->other);
}

// Two processes, linked by weft and tcp, play ping-pong; the second may believe to be on another
// host.
static void play(bool apart)
{
    int ends[2], status = 0;
    uint32_t number = 0, in = 0;
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "no sockets");
    pid_t child = fork();
    if (child == 0 && apart && (unshare(CLONE_NEWUTS) != 0 || sethostname("elsewhere", 9) != 0))
        skip("no other host name without root");
    open_linked("weft+tcp;ofi_rxm:lo");
    open_side(&host, &a);
    exchange_names(ends[child == 0], &a);
    for (uint32_t round = 1; round <= 50; round++) {
        OK(fi_trecv(a.ep, &in, 4, NULL, a.other, round, 0, &in));
        number = round + (child == 0);
        if (child == 0) {
            CHECK(next_entry(&a, NULL).op_context == &in && in == round, "%u instead of %u", in,
                  round);
            POST(&a, NULL, fi_tinject(a.ep, &number, 4, a.other, round));
        } else {
            POST(&a, NULL, fi_tinject(a.ep, &number, 4, a.other, round));
            CHECK(next_entry(&a, NULL).op_context == &in && in == round + 1, "%u instead of %u", in,
                  round + 1);
        }
    }
    char done = 1;
    CHECK(write(ends[child == 0], &done, 1) == 1, "the other process is gone");
    while (recv(ends[child == 0], &done, 1, MSG_DONTWAIT) < 0)
        progress(&a);
    if (child == 0)
        _exit(0);
    CHECK(waitpid(child, &status, 0) == child && status == 0, "the other process ended with %#x",
          status);
}

static void two_processes_of_a_host_are_linked_by_weft_and_tcp(void)
{
    play(false);
}

static void processes_of_two_hosts_are_linked_by_tcp_beside_weft(void)
{
    play(true);
}

const struct test_case peer_cases[] = {
    {"a_linked_peer_carries_tagged_messages_of_every_length",
     a_linked_peer_carries_tagged_messages_of_every_length},
    {"a_linked_peer_reports_what_is_cut_and_carries_data",
     a_linked_peer_reports_what_is_cut_and_carries_data},
    {"messages_that_a_linked_peer_keeps_are_in_order_and_can_be_discarded",
     messages_that_a_linked_peer_keeps_are_in_order_and_can_be_discarded},
    {"a_child_of_a_linked_process_is_refused_and_harms_nothing",
     a_child_of_a_linked_process_is_refused_and_harms_nothing},
    {"two_processes_of_a_host_are_linked_by_weft_and_tcp",
     two_processes_of_a_host_are_linked_by_weft_and_tcp},
    {"processes_of_two_hosts_are_linked_by_tcp_beside_weft",
     processes_of_two_hosts_are_linked_by_tcp_beside_weft},
    {NULL, NULL},
};
