// SPDX-License-Identifier: Apache-2.0 OR MIT
// Collectives and connections between processes that began at different times (MPI 4.1, chapter
// 11): collectives of merged parents and children and of parts of them, children that spawn
// children, connections that end and begin again, MPI_Comm_join, parents that end first. A spawned
// process is this program with the argument `-child` and what it shall do.
#include "standard.h"

#include <sys/socket.h>
#include <netinet/in.h>
#include <unistd.h>

enum { WORD = 1, DATA = 2, LONG = 200000, ROUNDS = 3, MOST = 16 };

static char path[4096];

// Every rank's share of each collective, and what must come of it, for blocks of COUNT numbers.
static void all_kinds(MPI_Comm comm, int count) {
    int here, all;
    succeeds(MPI_Comm_rank(comm, &here));
    succeeds(MPI_Comm_size(comm, &all));
    size_t bytes = (size_t)count * sizeof(int);
    int *own = filled(bytes, 0), *sums = filled(bytes, 0), *each = filled(bytes * MOST, 0),
        *swapped = filled(bytes * MOST, 0);
    MPI_Request request;
    for (int i = 0; i < count; i++) own[i] = here * 1000 + i;
    succeeds(MPI_Barrier(comm));
    succeeds(MPI_Allreduce(own, sums, count, MPI_INT, MPI_SUM, comm));
    for (int i = 0; i < count; i++) expect(sums[i] == all * (all - 1) / 2 * 1000 + all * i);
    succeeds(MPI_Allgather(own, count, MPI_INT, each, count, MPI_INT, comm));
    succeeds(MPI_Alltoall(each, count, MPI_INT, swapped, count, MPI_INT, comm));
    for (int r = 0; r < all; r++) {
        expect(each[r * count + count - 1] == r * 1000 + count - 1);
        expect(swapped[r * count + count - 1] == here * 1000 + count - 1);
    }
    succeeds(MPI_Bcast(own, count, MPI_INT, all - 1, comm));
    expect(own[0] == (all - 1) * 1000);
    succeeds(MPI_Iallreduce(own, sums, count, MPI_INT, MPI_MAX, comm, &request));
    succeeds(MPI_Wait(&request, MPI_STATUS_IGNORE));
    expect(sums[count - 1] == (all - 1) * 1000 + count - 1);
    free(own);
    free(sums);
    free(each);
    free(swapped);
}

// More calls than those after which ranks agree on memory of their own.
static void many_rounds(MPI_Comm comm) {
    static const int counts[ROUNDS] = {1, 300, 30000};
    for (int i = 0; i < ROUNDS; i++) all_kinds(comm, counts[i]);
}

// Parents and children together, each side alone, and pairs across.
static void of_merged(MPI_Comm across, int is_high) {
    MPI_Comm merged, part;
    int here, all;
    succeeds(MPI_Intercomm_merge(across, is_high, &merged));
    succeeds(MPI_Comm_rank(merged, &here));
    succeeds(MPI_Comm_size(merged, &all));
    many_rounds(merged);
    many_rounds(MPI_COMM_WORLD);
    succeeds(MPI_Comm_split(merged, is_high, here, &part));
    many_rounds(part);
    succeeds(MPI_Comm_free(&part));
    succeeds(MPI_Comm_split(merged, here % (all / 2), here, &part));
    many_rounds(part);
    succeeds(MPI_Comm_free(&part));
    many_rounds(merged);
    succeeds(MPI_Comm_free(&merged));
}

// Collectives of two groups: what one gives, the other gets. The root is the first of the parents.
static void of_two_groups(MPI_Comm across, int is_child) {
    int here, there, root = is_child ? 0 : MPI_PROC_NULL, sum, got[MOST];
    succeeds(MPI_Comm_rank(across, &here));
    succeeds(MPI_Comm_remote_size(across, &there));
    if (!is_child && here == 0) root = MPI_ROOT;
    for (int i = 0; i < ROUNDS; i++) {
        int own = (is_child ? 100 : 10) * i + here, word = root == MPI_ROOT ? 4711 + i : 0;
        int wanted = (is_child ? 10 : 100) * i;
        succeeds(MPI_Barrier(across));
        succeeds(MPI_Bcast(&word, 1, MPI_INT, root, across));
        if (is_child) expect(word == 4711 + i);
        succeeds(MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, across));
        expect(sum == wanted * there + there * (there - 1) / 2);
        succeeds(MPI_Allgather(&own, 1, MPI_INT, got, 1, MPI_INT, across));
        for (int r = 0; r < there; r++) expect(got[r] == wanted + r);
        succeeds(MPI_Gather(&own, 1, MPI_INT, got, 1, MPI_INT, root, across));
        for (int r = 0; root == MPI_ROOT && r < there; r++) expect(got[r] == wanted + r);
        MPI_Request request;
        succeeds(MPI_Iallreduce(&own, &sum, 1, MPI_INT, MPI_MAX, across, &request));
        succeeds(MPI_Wait(&request, MPI_STATUS_IGNORE));
        expect(sum == wanted + there - 1);
    }
}

// spawn: COUNT children that do what ROLE says; false if there are none.
static bool spawn(char *role, int count, MPI_Comm from, MPI_Comm *children) {
    char *arguments[] = {"-child", role, NULL};
    if (!succeeds(MPI_Comm_spawn(path, arguments, count, MPI_INFO_NULL, 0, from, children,
                                 MPI_ERRCODES_IGNORE)))
        return false;
    return succeeds(MPI_Comm_set_errhandler(*children, MPI_ERRORS_RETURN));
}

static void merged_alike(void) {
    MPI_Comm children;
    if (!spawn("merged", size, MPI_COMM_WORLD, &children)) return;
    of_merged(children, 0);
    succeeds(MPI_Comm_disconnect(&children));
}

static void two_groups(void) {
    MPI_Comm children;
    if (!spawn("groups", size + 1, MPI_COMM_WORLD, &children)) return;
    of_two_groups(children, 0);
    succeeds(MPI_Comm_disconnect(&children));
}

// Two families that live at the same time and do not know each other.
static void two_families(void) {
    MPI_Comm first, second;
    if (!spawn("groups", 1, MPI_COMM_WORLD, &first)) return;
    if (!spawn("merged", size, MPI_COMM_WORLD, &second)) return;
    of_merged(second, 0);
    of_two_groups(first, 0);
    succeeds(MPI_Comm_disconnect(&first));
    succeeds(MPI_Comm_disconnect(&second));
}

// A child whose child answers through it.
static void grandchildren(void) {
    MPI_Comm children;
    int word = 0;
    if (!spawn("middle", 1, MPI_COMM_WORLD, &children)) return;
    if (rank == 0)
        succeeds(MPI_Recv(&word, 1, MPI_INT, 0, WORD, children, MPI_STATUS_IGNORE));
    if (rank == 0) expect(word == 12);
    succeeds(MPI_Comm_disconnect(&children));
}

static void middle(MPI_Comm parent) {
    MPI_Comm child;
    int word = 0;
    if (!spawn("last", 1, MPI_COMM_WORLD, &child)) return;
    succeeds(MPI_Recv(&word, 1, MPI_INT, 0, WORD, child, MPI_STATUS_IGNORE));
    of_two_groups(child, 0);
    succeeds(MPI_Comm_disconnect(&child));
    word++;
    succeeds(MPI_Send(&word, 1, MPI_INT, 0, WORD, parent));
}

static void last(MPI_Comm parent) {
    int word = 11;
    succeeds(MPI_Send(&word, 1, MPI_INT, 0, WORD, parent));
    of_two_groups(parent, 1);
}

// The children go on among themselves when no parent is connected to them any more.
static void on_their_own(void) {
    MPI_Comm children;
    if (!spawn("alone", 2, MPI_COMM_WORLD, &children)) return;
    succeeds(MPI_Comm_disconnect(&children));
}

// Both sides give the other LONG bytes, and take part in collectives.
static void exchange(MPI_Comm across, unsigned seed) {
    char *from = patterned(LONG, seed + (unsigned)rank), *into = filled(LONG, 0);
    succeeds(MPI_Sendrecv(from, LONG, MPI_BYTE, 0, DATA, into, LONG, MPI_BYTE, 0, DATA, across,
                          MPI_STATUS_IGNORE));
    expect_pattern(into, LONG, seed + 1 - (unsigned)rank);
    free(from);
    free(into);
    of_two_groups(across, rank == 1);
}

// Rank 0 accepts what rank 1 connects, again and again by one port.
static void connected_again(void) {
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm across, merged;
    if (rank > 1) return;
    if (rank == 0 && !succeeds(MPI_Open_port(MPI_INFO_NULL, port))) port[0] = 0;
    if (rank == 0)
        succeeds(MPI_Send(port, sizeof port, MPI_CHAR, 1, WORD, MPI_COMM_WORLD));
    else
        succeeds(MPI_Recv(port, sizeof port, MPI_CHAR, 0, WORD, MPI_COMM_WORLD,
                          MPI_STATUS_IGNORE));
    for (unsigned i = 0; port[0] && i < 3; i++) {
        if (rank == 0 &&
            !succeeds(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &across)))
            return;
        if (rank == 1 &&
            !succeeds(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &across)))
            return;
        succeeds(MPI_Comm_set_errhandler(across, MPI_ERRORS_RETURN));
        exchange(across, i);
        succeeds(MPI_Intercomm_merge(across, rank, &merged));
        many_rounds(merged);
        succeeds(MPI_Comm_free(&merged));
        succeeds(MPI_Comm_disconnect(&across));
    }
    if (rank == 0 && port[0]) succeeds(MPI_Close_port(port));
}

// socket_of: two ranks' ends of a stream; -1 without one.
static int socket_of(void) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof at;
    int ours = socket(AF_INET, SOCK_STREAM, 0), stream = ours;
    if (rank == 0) {
        bind(ours, (struct sockaddr *)&at, length);
        listen(ours, 1);
        getsockname(ours, (struct sockaddr *)&at, &length);
        succeeds(MPI_Send(&at, sizeof at, MPI_BYTE, 1, WORD, MPI_COMM_WORLD));
        stream = accept(ours, NULL, NULL);
        close(ours);
    } else {
        succeeds(MPI_Recv(&at, sizeof at, MPI_BYTE, 0, WORD, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        if (connect(ours, (struct sockaddr *)&at, length) != 0) stream = -1;
    }
    return stream;
}

static void joined(void) {
    MPI_Comm across = MPI_COMM_NULL;
    if (rank > 1) return;
    int stream = socket_of();
    expect(stream >= 0);
    if (stream < 0 || !succeeds(MPI_Comm_join(stream, &across))) return;
    if (across == MPI_COMM_NULL) {
        cannot("MPI_Comm_join answers that there is no way");
    } else {
        exchange(across, 3);
        succeeds(MPI_Comm_disconnect(&across));
    }
    close(stream);
}

static int child(const char *role) {
    MPI_Comm parent;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_get_parent(&parent);
    MPI_Comm_set_errhandler(parent, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (strcmp(role, "merged") == 0) of_merged(parent, 1);
    if (strcmp(role, "groups") == 0) of_two_groups(parent, 1);
    if (strcmp(role, "middle") == 0) middle(parent);
    if (strcmp(role, "last") == 0) last(parent);
    succeeds(MPI_Comm_disconnect(&parent));
    if (strcmp(role, "alone") == 0) many_rounds(MPI_COMM_WORLD);
    if (noted()) printf("not ok dynamic/child: as %s: %s\n", role, noted());
    fflush(stdout);
    MPI_Finalize();
    return 0;
}

static const struct test tests[] = {
    {"merged_alike", merged_alike, 1},
    {"two_groups", two_groups, 1},
    {"two_families", two_families, 1},
    {"grandchildren", grandchildren, 1},
    {"on_their_own", on_their_own, 1},
    {"connected_again", connected_again, 2},
    {"joined", joined, 2},
    {NULL, NULL, 0},
};

int main(int argc, char **argv) {
    if (argc > 2 && strcmp(argv[1], "-child") == 0) {
        if (!realpath(argv[0], path)) return 1;
        return child(argv[2]);
    }
    if (!realpath(argv[0], path)) {
        printf("not ok dynamic: its own path is not known from %s\n", argv[0]);
        return 1;
    }
    return run_tests(argc, argv, "dynamic", MPI_THREAD_SINGLE, tests);
}
