// SPDX-License-Identifier: Apache-2.0 OR MIT
// Address vectors of both kinds: numbers, names, ranges, removal.
#include "harness.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>

static struct host host;
static struct fid_av *av;

static void open_vector(enum fi_av_type type)
{
    struct fi_av_attr attr = {.type = type, .count = 4};
    open_host(&host, NULL);
    OK(fi_av_open(host.domain, &attr, &av, NULL));
}

static void close_vector(void)
{
    OK(fi_close(&av->fid));
    close_host(&host);
}

static struct sockaddr_in address(int last, int port)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    in.sin_addr.s_addr = htonl(0x7f000000u + (unsigned)last);
    return in;
}

static void check_lookup(fi_addr_t name, int last, int port)
{
    struct sockaddr_in found = {0}, wanted = address(last, port);
    size_t length = sizeof(found);
    OK(fi_av_lookup(av, name, &found, &length));
    CHECK(length == sizeof(found) && !memcmp(&found, &wanted, sizeof(wanted)),
          "another address than 127.0.0.%d", last);
}

static void a_table_numbers_addresses_from_zero(void)
{
    struct sockaddr_in many[3] = {address(1, 7001), address(1, 7002), address(2, 7001)};
    open_vector(FI_AV_TABLE);
    ANSWERS(3, fi_av_insert(av, many, 3, NULL, 0,
                            NULL)); // a table may be filled without storing numbers
    check_lookup(0, 1, 7001);
    check_lookup(1, 1, 7002);
    check_lookup(2, 2, 7001);
    close_vector();
}

static void a_map_gives_names_that_lead_back(void)
{
    fi_addr_t names[100];
    open_vector(FI_AV_MAP);
    for (int index = 0; index < 100; index++) {
        struct sockaddr_in in = address(index + 1, 9000 + index);
        ANSWERS(1, fi_av_insert(av, &in, 1, &names[index], 0, NULL));
    }
    for (int index = 0; index < 100; index++)
        check_lookup(names[index], index + 1, 9000 + index);
    close_vector();
}

static void a_removed_name_leads_nowhere(void)
{
    struct sockaddr_in in = address(1, 7001);
    fi_addr_t name;
    size_t length = sizeof(in);
    open_vector(FI_AV_TABLE);
    ANSWERS(1, fi_av_insert(av, &in, 1, &name, 0, NULL));
    OK(fi_av_remove(av, &name, 1, 0));
    ANSWERS(-FI_EINVAL, fi_av_lookup(av, name, &in, &length));
    ANSWERS(-FI_EINVAL, fi_av_remove(av, &name, 1, 0));
    close_vector();
}

static void bad_addresses_are_refused_one_by_one(void)
{
    struct sockaddr_in many[3] = {address(1, 7001), address(2, 7002), address(3, 7003)};
    fi_addr_t names[3];
    int errors[3] = {-1, -1, -1};
    many[1].sin_family = AF_UNIX;
    open_vector(FI_AV_TABLE);
    ANSWERS(2, fi_av_insert(av, many, 3, names, FI_SYNC_ERR, errors));
    CHECK(names[1] == FI_ADDR_NOTAVAIL && names[0] != FI_ADDR_NOTAVAIL &&
              names[2] != FI_ADDR_NOTAVAIL,
          "names");
    CHECK(errors[0] == 0 && errors[1] == FI_EINVAL && errors[2] == 0, "errors %d %d %d", errors[0],
          errors[1], errors[2]);
    check_lookup(names[2], 3, 7003);
    ANSWERS(-FI_EINVAL, fi_av_insert(av, NULL, 1, names, 0, NULL));
    close_vector();
}

static void services_and_ranges_are_resolved(void)
{
    fi_addr_t names[6];
    open_vector(FI_AV_TABLE);
    ANSWERS(1, fi_av_insertsvc(av, "127.0.0.9", "7100", names, 0, NULL));
    check_lookup(names[0], 9, 7100);
    ANSWERS(6, fi_av_insertsym(av, "127.0.0.1", 2, "7200", 3, names, 0, NULL));
    for (int index = 0; index < 6; index++)
        check_lookup(names[index], 1 + index / 3, 7200 + index % 3);
    ANSWERS(-FI_EINVAL, fi_av_insertsvc(av, NULL, "7100", names, 0, NULL));
    close_vector();
}

static void an_address_prints_as_text(void)
{
    struct sockaddr_in in = address(1, 7001);
    char text[64] = "";
    size_t length = sizeof(text);
    open_vector(FI_AV_TABLE);
    CHECK(fi_av_straddr(av, &in, text, &length) == text, "no text");
    CHECK(!strcmp(text, "fi_sockaddr_in://127.0.0.1:7001"), "%s", text);
    CHECK(length == strlen(text) + 1, "length %zu", length);
    length = 5;
    fi_av_straddr(av, &in, text, &length);
    CHECK(!strcmp(text, "fi_s"), "not cut to the room: %s", text);
    close_vector();
}

static void insertions_are_reported_as_events_where_asked(void)
{
    struct fi_av_attr attr = {.type = FI_AV_TABLE, .flags = FI_EVENT};
    struct fi_eq_attr eq_attr = {.wait_obj = FI_WAIT_UNSPEC};
    struct sockaddr_in many[2] = {address(1, 7001), address(2, 7001)};
    struct fi_eq_entry entry;
    struct fid_eq *eq;
    uint32_t event;
    int context;
    open_host(&host, NULL);
    OK(fi_av_open(host.domain, &attr, &av, NULL));
    ANSWERS(-FI_ENOEQ, fi_av_insert(av, many, 2, NULL, 0, &context));
    OK(fi_eq_open(host.fabric, &eq_attr, &eq, NULL));
    OK(fi_av_bind(av, &eq->fid, 0));
    ANSWERS(0, fi_av_insert(av, many, 2, NULL, 0, &context));
    ANSWERS(sizeof(entry), fi_eq_sread(eq, &event, &entry, sizeof(entry), 1000, 0));
    CHECK(event == FI_AV_COMPLETE && entry.fid == &av->fid && entry.context == &context &&
              entry.data == 2,
          "event");
    struct fi_eq_err_entry error = {0};
    many[0].sin_family = AF_UNIX;
    ANSWERS(0, fi_av_insert(av, many, 2, NULL, 0, &context));
    ANSWERS(-FI_EAVAIL, fi_eq_read(eq, &event, &entry, sizeof(entry), 0));
    ANSWERS(sizeof(error), fi_eq_readerr(eq, &error, 0));
    CHECK(error.err == FI_EINVAL && error.data == 0 && error.context == &context, "error %d",
          error.err);
    ANSWERS(sizeof(entry), fi_eq_read(eq, &event, &entry, sizeof(entry), 0));
    CHECK(entry.data == 1, "%llu addresses inserted", (unsigned long long)entry.data);
    ANSWERS(-FI_EBUSY, fi_close(&eq->fid));
    OK(fi_close(&av->fid));
    OK(fi_close(&eq->fid));
    close_host(&host);
}

const struct test_case vector_cases[] = {
    {"a_table_numbers_addresses_from_zero", a_table_numbers_addresses_from_zero},
    {"a_map_gives_names_that_lead_back", a_map_gives_names_that_lead_back},
    {"a_removed_name_leads_nowhere", a_removed_name_leads_nowhere},
    {"bad_addresses_are_refused_one_by_one", bad_addresses_are_refused_one_by_one},
    {"services_and_ranges_are_resolved", services_and_ranges_are_resolved},
    {"an_address_prints_as_text", an_address_prints_as_text},
    {"insertions_are_reported_as_events_where_asked",
     insertions_are_reported_as_events_where_asked},
    {NULL, NULL},
};
