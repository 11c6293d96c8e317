// SPDX-License-Identifier: Apache-2.0 OR MIT
// fi_getinfo: what is offered, what is refused, which addresses come back.
#include "harness.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <unistd.h>

static int ask(const struct fi_info *hints)
{
    struct fi_info *info = NULL;
    int answer = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info);
    if (info)
        fi_freeinfo(info);
    return answer;
}

static void everything_is_offered_without_hints(void)
{
    struct fi_info *info = NULL, *found;
    OK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, NULL, &info));
    for (found = info; found && strcmp(found->fabric_attr->prov_name, "weft"); found = found->next)
        ;
    CHECK(found, "no info of this provider in the list");
    uint64_t wanted = FI_MSG | FI_TAGGED | FI_SEND | FI_RECV | FI_MULTI_RECV | FI_DIRECTED_RECV |
                      FI_SOURCE | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_RMA | FI_ATOMIC | FI_READ |
                      FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
    CHECK((found->caps & wanted) == wanted, "capabilities %#llx", (unsigned long long)found->caps);
    CHECK(found->ep_attr->type == FI_EP_RDM && found->mode == 0 && found->domain_attr->mr_mode == 0,
          "modes");
    CHECK(found->domain_attr->cq_data_size >= 4 && found->tx_attr->inject_size >= 64, "sizes");
    CHECK(found->tx_attr->iov_limit >= 4 && found->ep_attr->mem_tag_format >> 63, "limits");
    fi_freeinfo(info);
}

static void other_endpoint_types_are_refused(void)
{
    struct fi_info *hints = new_hints();
    hints->ep_attr->type = FI_EP_MSG;
    ANSWERS(-FI_ENODATA, ask(hints));
    hints->ep_attr->type = FI_EP_DGRAM;
    ANSWERS(-FI_ENODATA, ask(hints));
    hints->ep_attr->type = FI_EP_UNSPEC;
    ANSWERS(0, ask(hints));
}

static void what_is_not_offered_is_refused(void)
{
    struct fi_info *hints = new_hints();
    hints->caps = FI_MSG | FI_HMEM;
    ANSWERS(-FI_ENODATA, ask(hints));
    hints->caps = FI_MSG | FI_MULTICAST;
    ANSWERS(-FI_ENODATA, ask(hints));
    hints->caps = FI_MSG;
    hints->domain_attr->cq_data_size = 9;
    ANSWERS(-FI_ENODATA, ask(hints));
    hints->domain_attr->cq_data_size = 0;
    hints->tx_attr->inject_size = 1 << 30;
    ANSWERS(-FI_ENODATA, ask(hints));
    hints->tx_attr->inject_size = 0;
    hints->domain_attr->name = strdup("no-such-domain");
    ANSWERS(-FI_ENODATA, ask(hints));
}

static void hints_come_back_in_the_answer(void)
{
    for (int threading = FI_THREAD_SAFE; threading <= FI_THREAD_ENDPOINT; threading++) {
        struct fi_info *hints = new_hints();
        hints->domain_attr->threading = threading;
        hints->domain_attr->av_type = threading % 2 ? FI_AV_MAP : FI_AV_TABLE;
        hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
        hints->domain_attr->mr_mode = FI_MR_ENDPOINT | FI_MR_LOCAL;
        hints->tx_attr->op_flags = FI_COMPLETION | FI_DELIVERY_COMPLETE;
        hints->caps = FI_TAGGED;
        struct fi_info *info = get_info(0, hints);
        CHECK((int)info->domain_attr->threading == threading, "threading %d",
              info->domain_attr->threading);
        CHECK(info->domain_attr->av_type == hints->domain_attr->av_type, "av_type %d",
              info->domain_attr->av_type);
        CHECK(info->tx_attr->op_flags == hints->tx_attr->op_flags, "op_flags");
        CHECK(!(info->caps & (FI_MSG | FI_SOURCE)), "what was not asked for is there: %#llx",
              (unsigned long long)info->caps);
        CHECK((info->caps & (FI_SEND | FI_RECV)) == (FI_SEND | FI_RECV), "directions are missing");
        fi_freeinfo(info);
        fi_freeinfo(hints);
    }
}

static void check_address(const void *address, size_t length, const char *host, int port)
{
    const struct sockaddr_in *in = address;
    char text[INET_ADDRSTRLEN];
    CHECK(in && length == sizeof(*in) && in->sin_family == AF_INET, "not an IPv4 address");
    inet_ntop(AF_INET, &in->sin_addr, text, sizeof(text));
    CHECK(!strcmp(text, host) && ntohs(in->sin_port) == port, "%s:%d, not %s:%d", text,
          ntohs(in->sin_port), host, port);
}

static void node_and_service_name_one_end(void)
{
    struct fi_info *hints = new_hints(), *info;
    OK(fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", "7471", FI_SOURCE, hints, &info));
    check_address(info->src_addr, info->src_addrlen, "127.0.0.1", 7471);
    CHECK(!info->dest_addr && !info->dest_addrlen, "a target that nobody named");
    fi_freeinfo(info);
    OK(fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", "7472", 0, hints, &info));
    check_address(info->dest_addr, info->dest_addrlen, "127.0.0.1", 7472);
    check_address(info->src_addr, info->src_addrlen, "127.0.0.1", 0);
    fi_freeinfo(info);
    ANSWERS(-FI_ENODATA,
            fi_getinfo(FI_VERSION(1, 17), "not.a.number", "1", FI_NUMERICHOST, hints, &info));
}

static void ipv6_is_offered_when_asked_for(void)
{
    struct fi_info *hints = new_hints(), *info;
    hints->addr_format = FI_SOCKADDR_IN6;
    OK(fi_getinfo(FI_VERSION(1, 17), "::1", "7471", FI_SOURCE, hints, &info));
    const struct sockaddr_in6 *in = info->src_addr;
    CHECK(info->addr_format == FI_SOCKADDR_IN6 && info->src_addrlen == sizeof(*in), "format %u",
          info->addr_format);
    CHECK(in->sin6_family == AF_INET6 && ntohs(in->sin6_port) == 7471, "address");
    fi_freeinfo(info);
}

static void infos_can_be_copied_and_freed(void)
{
    struct fi_info *hints = new_hints(), *info = get_info(0, hints), *copy = fi_dupinfo(info);
    CHECK(copy && !strcmp(copy->domain_attr->name, "weft"), "the copy lost its name");
    fi_freeinfo(info);
    fi_freeinfo(copy);
    fi_freeinfo(hints);
}

// The port of the server. Another run of this program may be under way.
static int server_port(void) { return 12000 + getpid() % 20000; }

// Opens one end as an application that is a server, or the client of one, would; no out-of-band
// exchange.
static void open_end(struct host *end, struct side *side, const char *node, uint64_t flags)
{
    struct fi_info *hints = new_hints();
    char port[8];
    snprintf(port, sizeof(port), "%d", server_port());
    memset(end, 0, sizeof(*end));
    OK(fi_getinfo(FI_VERSION(1, 17), node, port, flags, hints, &end->info));
    fi_freeinfo(hints);
    OK(fi_fabric(end->info->fabric_attr, &end->fabric, NULL));
    OK(fi_domain(end->fabric, end->info, &end->domain, NULL));
    open_side(end, side);
}

static void a_server_that_names_no_node_is_reached_at_loopback_and_at_its_own_address(void)
{
    struct host server_host, client_host;
    struct side server, client;
    char address[INET_ADDRSTRLEN];
    if (over_datagrams())
        skip("over datagrams a server has one address, its host's usual one");
    open_end(&server_host, &server, NULL, FI_SOURCE);
    const struct sockaddr_in *own = (const void *)server.name;
    CHECK(own->sin_family == AF_INET && own->sin_addr.s_addr, "a name of nobody");
    CHECK(ntohs(own->sin_port) == server_port(), "a port of nobody");
    inet_ntop(AF_INET, &own->sin_addr, address, sizeof(address));
    for (int round = 0; round < 2; round++) {
        uint32_t in[2] = {0}, numbers[2] = {7, 8};
        fi_addr_t source = 1234;
        struct fi_cq_tagged_entry entry;
        open_end(&client_host, &client, round ? address : "127.0.0.1", 0);
        introduce(&client, client_host.info->dest_addr, &client.other);
        introduce(&server, client.name, &server.other);
        OK(fi_trecv(server.ep, &in[0], 4, NULL, server.other, 1, 0, &in[0]));
        OK(fi_trecv(client.ep, &in[1], 4, NULL, client.other, 2, 0, &in[1]));
        POST(&client, &server, fi_tinject(client.ep, &numbers[0], 4, client.other, 1));
        CHECK(next_entry(&server, &client).op_context == &in[0] && in[0] == 7, "another message");
        POST(&server, &client, fi_tinject(server.ep, &numbers[1], 4, server.other, 2));
        int64_t until = now_ms() + ENTRY_LIMIT_MS;
        while (fi_cq_readfrom(client.cq, &entry, 1, &source) != 1) {
            CHECK(now_ms() < until, "no answer from %s", round ? address : "127.0.0.1");
            progress(&server);
        }
        CHECK(entry.op_context == &in[1] && in[1] == 8 && source == client.other, "from %llx",
              (long long)source);
        close_side(&client);
        close_host(&client_host);
    }
    close_side(&server);
    close_host(&server_host);
}

const struct test_case info_cases[] = {
    {"everything_is_offered_without_hints", everything_is_offered_without_hints},
    {"other_endpoint_types_are_refused", other_endpoint_types_are_refused},
    {"what_is_not_offered_is_refused", what_is_not_offered_is_refused},
    {"hints_come_back_in_the_answer", hints_come_back_in_the_answer},
    {"node_and_service_name_one_end", node_and_service_name_one_end},
    {"ipv6_is_offered_when_asked_for", ipv6_is_offered_when_asked_for},
    {"infos_can_be_copied_and_freed", infos_can_be_copied_and_freed},
    {"a_server_that_names_no_node_is_reached_at_loopback_and_at_its_own_address",
     a_server_that_names_no_node_is_reached_at_loopback_and_at_its_own_address},
    {NULL, NULL},
};
