// SPDX-License-Identifier: Apache-2.0 OR MIT
// Processes that come later (MPI 4.1, chapter 11): MPI_Comm_spawn, MPI_Comm_spawn_multiple, the
// parent's communicator, ports. A spawned process is this program with the argument `-child`.
#include "standard.h"

enum { DATA = 1, WORD = 2, LONG = 300000 };

static char path[4096];

// converse: rank 0 of the parents exchanges messages with every child, and all meet in collectives.
static void converse(MPI_Comm children, int wanted) {
    int there = 0, sum = 0, one = 1, root = rank == 0 ? MPI_ROOT : MPI_PROC_NULL, word = 4711;
    succeeds(MPI_Comm_set_errhandler(children, MPI_ERRORS_RETURN));
    succeeds(MPI_Comm_remote_size(children, &there));
    if (there != wanted) wrong("%d children instead of %d", there, wanted);
    for (int i = 0; rank == 0 && i < there; i++) {
        char *from = patterned(LONG, (unsigned)i), *into = filled(LONG, 0);
        succeeds(MPI_Send(from, LONG, MPI_BYTE, i, DATA, children));
        succeeds(MPI_Recv(into, LONG, MPI_BYTE, i, DATA, children, MPI_STATUS_IGNORE));
        expect_pattern(into, LONG, (unsigned)i + 50);
        free(from);
        free(into);
    }
    succeeds(MPI_Bcast(&word, 1, MPI_INT, root, children));
    succeeds(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, children));
    expect(sum == 10 * there);
}

// What a child does; what is wrong there ends it, and its parent sees that its messages are
// missing.
static int child(void) {
    MPI_Comm parent, merged;
    int here, word = 0, sum = 0, ten = 10, parents = 0, all = 0, one = 1;
    MPI_Init(NULL, NULL);
    MPI_Comm_get_parent(&parent);
    if (parent == MPI_COMM_NULL) {
        printf("not ok spawn/child: it has no parent\n");
        return 1;
    }
    MPI_Comm_rank(parent, &here);
    MPI_Comm_remote_size(parent, &parents);
    char *from = patterned(LONG, (unsigned)here + 50), *into = filled(LONG, 0);
    MPI_Recv(into, LONG, MPI_BYTE, 0, DATA, parent, MPI_STATUS_IGNORE);
    expect_pattern(into, LONG, (unsigned)here);
    MPI_Send(from, LONG, MPI_BYTE, 0, DATA, parent);
    MPI_Bcast(&word, 1, MPI_INT, 0, parent);
    MPI_Allreduce(&ten, &sum, 1, MPI_INT, MPI_SUM, parent);
    MPI_Intercomm_merge(parent, 1, &merged);
    MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, merged);
    MPI_Comm_free(&merged);
    if (word != 4711 || sum != parents || all <= parents)
        printf("not ok spawn/child: word %d, sum %d, all %d, parents %d\n", word, sum, all,
               parents);
    if (noted()) printf("not ok spawn/child: %s\n", noted());
    fflush(stdout);
    MPI_Comm_disconnect(&parent);
    MPI_Finalize();
    free(from);
    free(into);
    return 0;
}

static void merge_and_part(MPI_Comm *children, int count) {
    MPI_Comm merged;
    int all = 0, one = 1, mine = 0;
    succeeds(MPI_Comm_size(*children, &mine));
    succeeds(MPI_Intercomm_merge(*children, 0, &merged));
    succeeds(MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, merged));
    expect(all == mine + count);
    succeeds(MPI_Comm_free(&merged));
    succeeds(MPI_Comm_disconnect(children));
}

static char *child_arguments[] = {"-child", NULL};

static void spawned(int count) {
    MPI_Comm children = MPI_COMM_NULL;
    int codes[8];
    memset(codes, -1, sizeof codes);
    if (!succeeds(MPI_Comm_spawn(path, child_arguments, count, MPI_INFO_NULL, 0, MPI_COMM_WORLD,
                                 &children, codes)))
        return;
    for (int i = 0; i < count; i++) expect(codes[i] == MPI_SUCCESS);
    converse(children, count);
    merge_and_part(&children, count);
}
static void one_child(void) { spawned(1); }
static void two_children(void) { spawned(2); }

static void again_and_again(void) {
    for (int i = 0; i < 3; i++) spawned(1);
}

static void from_one_rank(void) {
    MPI_Comm children = MPI_COMM_NULL;
    if (rank == 0) {
        if (succeeds(MPI_Comm_spawn(path, child_arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF,
                                    &children, MPI_ERRCODES_IGNORE))) {
            converse(children, 1);
            merge_and_part(&children, 1);
        }
    }
    meet(MPI_COMM_WORLD);
}

static void spawn_multiple(void) {
    MPI_Comm children = MPI_COMM_NULL;
    char *commands[] = {path, path}, **arguments[] = {child_arguments, child_arguments};
    int counts[] = {1, 1};
    MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
    if (!succeeds(MPI_Comm_spawn_multiple(2, commands, arguments, counts, infos, 0, MPI_COMM_WORLD,
                                          &children, MPI_ERRCODES_IGNORE)))
        return;
    converse(children, 2);
    merge_and_part(&children, 2);
}

static void no_parent(void) {
    MPI_Comm parent = MPI_COMM_WORLD;
    succeeds(MPI_Comm_get_parent(&parent));
    expect(parent == MPI_COMM_NULL);
}

// Rank 0 accepts, rank 1 connects, as two programs would that know nothing of each other but the
// port's name.
static void ports(void) {
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm other = MPI_COMM_NULL;
    int value = 70 + rank, got = 0, is_inter = 0;
    if (rank > 1) return;
    if (rank == 0) {
        if (!succeeds(MPI_Open_port(MPI_INFO_NULL, port))) port[0] = 0;
        succeeds(MPI_Send(port, MPI_MAX_PORT_NAME, MPI_CHAR, 1, WORD, MPI_COMM_WORLD));
        if (!port[0]) return;
        if (!succeeds(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other))) return;
    } else {
        succeeds(MPI_Recv(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, WORD, MPI_COMM_WORLD,
                          MPI_STATUS_IGNORE));
        if (!port[0]) return;
        if (!succeeds(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other))) return;
    }
    succeeds(MPI_Comm_test_inter(other, &is_inter));
    expect(is_inter);
    succeeds(MPI_Sendrecv(&value, 1, MPI_INT, 0, DATA, &got, 1, MPI_INT, 0, DATA, other,
                          MPI_STATUS_IGNORE));
    expect(got == 70 + 1 - rank);
    succeeds(MPI_Comm_disconnect(&other));
    if (rank == 0) succeeds(MPI_Close_port(port));
}

// The first case has children alone, so that an MPI which can do one but not the other shows it.
static const struct test tests[] = {
    {"no_parent", no_parent, 1},
    {"one_child", one_child, 1},
    {"two_children", two_children, 1},
    {"again_and_again", again_and_again, 1},
    {"from_one_rank", from_one_rank, 1},
    {"spawn_multiple", spawn_multiple, 1},
    {"ports", ports, 2},
    {NULL, NULL, 0},
};

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "-child") == 0) return child();
    if (!realpath(argv[0], path)) {
        printf("not ok spawn: its own path is not known from %s\n", argv[0]);
        return 1;
    }
    return run_tests(argc, argv, "spawn", MPI_THREAD_SINGLE, tests);
}
