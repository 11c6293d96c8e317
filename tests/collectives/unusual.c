/* SPDX-License-Identifier: Apache-2.0 OR MIT
 * What few programs do around collectives, and the standard allows. For two ranks or more.
 *
 *   unusual CASE
 *
 * - environment: a rank clears its environment before its first collective.
 * - early: a rank calls collectives on a session's communicator before MPI_Init.
 * - late: a session's communicators are used after MPI_Finalize.
 * - later: the session begins after MPI_Finalize, too.
 * - across: calls that do not wait, on a session's communicator, are begun before MPI_Finalize or,
 *   on other ranks, after it, and end after it.
 * - deleted: the delete function of an attribute makes calls on the communicator that goes.
 * - deferred: on one rank the communicator goes later, when its last message has come.
 * - vetoed: a delete function keeps a communicator whose call is under way.
 * - vetoed_once: it does so only the first time that the program frees it.
 * - ended: an attribute of MPI_COMM_SELF is older than the first collective. Its delete function,
 *   which MPI_Finalize calls, ends calls that do not wait, and makes new ones.
 * - failed: such a function fails.
 * - exit: a function of exit(3) makes calls, frees a communicator and ends the MPI.
 * - order: on some ranks such an attribute is older than the first collective, on others not.
 * - bottom: absolute addresses, with MPI_BOTTOM.
 * - nowhere: there is no place for a request.
 * - freed: with MPI_THREAD_MULTIPLE, communicators are freed while messages are under way there.
 * - spoilt: the MPI cannot pack what the root gives.
 * - refused: arguments that the MPI refuses, on a communicator that is served.
 * - sessionless: a program asks the loader whether the MPI has sessions, as mpi4py does. (Open MPI
 *   4.1 has none.)
 * - below: the first rank of an exscan, whose result is none, has nowhere for it.
 *
 * Ends with `all is well`, says what is not, or says what the MPI does not have. */
#define _GNU_SOURCE
#include "own.h"
#include <string.h>

#if defined OMPI_MAJOR_VERSION ? OMPI_MAJOR_VERSION >= 5 : MPI_VERSION >= 4
#define HAS_SESSIONS 1
#endif

static int rank, ranks;

static void fail(const char *what, int found) {
    fprintf(stderr, "rank %d: %s: %d\n", rank, what, found);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

static void begin(int level) {
    int given;
    MPI_Init_thread(NULL, NULL, level, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
}

/* So many calls that all ranks agree on the communicator. */
static void use(MPI_Comm communicator) {
    int size, one = 1, sum;
    MPI_Request request;
    MPI_Comm_size(communicator, &size);
    for (int turn = 0; turn < 8; turn++) {
        sum = -1;
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, communicator);
        if (sum != size) fail("a sum", sum);
        MPI_Barrier(communicator);
        sum = -1;
        MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, communicator, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (sum != size) fail("a sum of a call that does not wait", sum);
    }
}

static void environment(void) {
    MPI_Comm copy;
    begin(MPI_THREAD_SINGLE);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    if (rank == 0) clearenv();
    use(MPI_COMM_WORLD);
    use(copy);
    MPI_Comm_free(&copy);
}

/* What mpi4py reads as "the MPI lacks the function" (PyMPI_ERR_UNAVAILABLE). */
enum { UNAVAILABLE = -1431655766 };

static void sessionless(void) {
    begin(MPI_THREAD_SINGLE);
    use(MPI_COMM_WORLD);
    int (*open)(void *, void *, void *) = dlsym(RTLD_DEFAULT, "MPI_Session_init");
    if (!open) fail("Weft's library is not loaded", 0);
    void *session;
    int answer = open(NULL, NULL, &session);
    if (answer != UNAVAILABLE) fail("a session of an MPI that has none", answer);
    use(MPI_COMM_WORLD);
}

#ifdef HAS_SESSIONS
static MPI_Comm of_session(MPI_Session session, const char *processes, const char *tag) {
    MPI_Group group;
    MPI_Comm made;
    MPI_Group_from_session_pset(session, processes, &group);
    MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &made);
    MPI_Group_free(&group);
    return made;
}

static void early(void) {
    const char *hydras = getenv("PMI_RANK"), *prrtes = getenv("OMPI_COMM_WORLD_RANK");
    int is_first = hydras ? !atoi(hydras) : prrtes && !atoi(prrtes);
    MPI_Session session;
    if (is_first) {
        MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
        MPI_Comm own = of_session(session, "mpi://SELF", "own");
        use(own);
        MPI_Comm_free(&own);
    }
    begin(MPI_THREAD_SINGLE);
    use(MPI_COMM_WORLD);
    if (is_first) MPI_Session_finalize(&session);
}

static void late(int is_new) {
    MPI_Session session;
    MPI_Comm first, second;
    begin(MPI_THREAD_SINGLE);
    use(MPI_COMM_WORLD);
    if (is_new) MPI_Finalize();
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    first = of_session(session, "mpi://WORLD", "first");
    use(first);
    if (!is_new) MPI_Finalize();
    use(first);
    second = of_session(session, "mpi://WORLD", "second");
    use(second);
    MPI_Comm_free(&second);
    MPI_Comm_free(&first);
    MPI_Session_finalize(&session);
}

static void across(void) {
    enum { CALLS = 12 };
    int one = 1, sums[CALLS], is_early;
    MPI_Session session;
    MPI_Request requests[CALLS];
    begin(MPI_THREAD_SINGLE);
    is_early = rank == 0;
    use(MPI_COMM_WORLD);
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Comm all = of_session(session, "mpi://WORLD", "all");
    use(all);
    for (int at = 0; is_early && at < CALLS; at++)
        MPI_Iallreduce(&one, &sums[at], 1, MPI_INT, MPI_SUM, all, &requests[at]);
    MPI_Finalize();
    for (int at = 0; !is_early && at < CALLS; at++)
        MPI_Iallreduce(&one, &sums[at], 1, MPI_INT, MPI_SUM, all, &requests[at]);
    MPI_Waitall(CALLS, requests, MPI_STATUSES_IGNORE);
    for (int at = 0; at < CALLS; at++)
        if (sums[at] != ranks) fail("a sum across MPI_Finalize", sums[at]);
    MPI_Comm_free(&all);
    MPI_Session_finalize(&session);
}
#endif

static int make_calls(MPI_Comm communicator, int key, void *value, void *state) {
    (void)key, (void)value;
    use(communicator);
    ++*(int *)state;
    return MPI_SUCCESS;
}

/* Handles are used again: what is made next is of another size. */
static void deleted(void) {
    int key, count = 0;
    MPI_Comm copy, half;
    begin(MPI_THREAD_SINGLE);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, make_calls, &key, &count);
    for (int turn = 0; turn < 20; turn++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &copy);
        if (turn % 2) use(copy);
        MPI_Comm_set_attr(copy, key, NULL);
        if (turn % 4 < 2) use(copy);
        if (turn % 3) MPI_Comm_free(&copy);
        else MPI_Comm_disconnect(&copy);
        MPI_Comm_split(MPI_COMM_WORLD, rank == 0, 0, &half);
        use(half);
        MPI_Comm_free(&half);
    }
    if (count != 20) fail("a delete function", count);
    MPI_Comm_free_keyval(&key);
}

/* Fewer calls than ranks agree after, since only some are in MPI_Comm_free
 * (docs/collectives.md, clause 7). */
static int make_few_calls(MPI_Comm communicator, int key, void *value, void *state) {
    int one = 1, sum = -1;
    (void)key, (void)value;
    for (int turn = 0; turn < 2; turn++) {
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, communicator);
        if (sum != ranks) fail("a sum in a delete function", sum);
    }
    ++*(int *)state;
    return MPI_SUCCESS;
}

#ifdef OMPI_MAJOR_VERSION
#define IS_FREED_LATE 0
#else
#define IS_FREED_LATE 1
#endif

/* MPICH deletes the attributes with the communicator, on the first rank in MPI_Wait. The next one
 * may have the same handle there, and has it at least once. */
static void deferred(void) {
    int key, count = 0, same = 0;
    begin(MPI_THREAD_SINGLE);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, make_few_calls, &key, &count);
    for (int turn = 0; turn < 6; turn++) {
        MPI_Comm copy, half;
        MPI_Request request;
        MPI_Fint handle;
        int taken = -1;
        MPI_Comm_dup(MPI_COMM_WORLD, &copy);
        MPI_Comm_set_attr(copy, key, NULL);
        use(copy);
        if (rank == 0) MPI_Irecv(&taken, 1, MPI_INT, 1, 3, copy, &request);
        if (rank == 1) {
            MPI_Recv(NULL, 0, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(&turn, 1, MPI_INT, 0, 3, copy);
        }
        if (rank == 0 && !IS_FREED_LATE) MPI_Send(NULL, 0, MPI_INT, 1, 3, MPI_COMM_WORLD);
        handle = MPI_Comm_c2f(copy);
        MPI_Comm_free(&copy);
        if (rank == 0 && IS_FREED_LATE) {
            if (count != turn) fail("freed too early", turn);
            MPI_Send(NULL, 0, MPI_INT, 1, 3, MPI_COMM_WORLD);
        }
        if (rank == 0) MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (rank == 0 && taken != turn) fail("a message", taken);
        MPI_Comm_split(MPI_COMM_WORLD, turn % 2 && rank == 0, 0, &half);
        same += MPI_Comm_c2f(half) == handle;
        use(half);
        MPI_Comm_free(&half);
    }
    if (count != 6) fail("a delete function", count);
    if (IS_FREED_LATE && rank == 0 && !same) fail("the same handle", same);
    MPI_Comm_free_keyval(&key);
}

static void on_finalize(MPI_Comm_delete_attr_function *act) {
    int key;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, act, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
    MPI_Comm_free_keyval(&key);
}

enum { UNDER_WAY = 3 };
static int sums[UNDER_WAY];
static MPI_Request under_way[UNDER_WAY];
static int acts;

static int end_all(MPI_Comm communicator, int key, void *value, void *state) {
    (void)communicator, (void)key, (void)value, (void)state;
    MPI_Waitall(UNDER_WAY, under_way, MPI_STATUSES_IGNORE);
    for (int at = 0; at < UNDER_WAY; at++)
        if (sums[at] != ranks) fail("a sum that MPI_Finalize waits for", sums[at]);
    use(MPI_COMM_WORLD);
    acts++;
    return MPI_SUCCESS;
}

static void ended(void) {
    static const int one = 1;
    begin(MPI_THREAD_SINGLE);
    on_finalize(end_all);
    use(MPI_COMM_WORLD);
    for (int at = 0; at < UNDER_WAY; at++)
        MPI_Iallreduce(&one, &sums[at], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &under_way[at]);
    MPI_Finalize();
    if (acts != 1) fail("functions of MPI_Finalize", acts);
}

static int fail_once(MPI_Comm communicator, int key, void *value, void *state) {
    (void)communicator, (void)key, (void)value, (void)state;
    acts++;
    return MPI_ERR_OTHER;
}

static void failed(void) {
    begin(MPI_THREAD_SINGLE);
    use(MPI_COMM_WORLD);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    on_finalize(fail_once);
    MPI_Finalize();
    if (acts != 1) fail("functions of MPI_Finalize", acts);
}

static MPI_Comm for_exit;

static void act_at_exit(void) {
    use(for_exit);
    MPI_Comm_free(&for_exit);
    MPI_Finalize();
    if (rank == 0) printf("all is well\n");
}

/* The values of this thread go before such a function runs. */
static void at_exit(void) {
    begin(MPI_THREAD_SINGLE);
    MPI_Comm_dup(MPI_COMM_WORLD, &for_exit);
    use(MPI_COMM_WORLD);
    if (atexit(act_at_exit)) fail("atexit", 1);
    exit(0);
}

static int use_all(MPI_Comm communicator, int key, void *value, void *state) {
    (void)communicator, (void)key, (void)value, (void)state;
    use(MPI_COMM_WORLD);
    acts++;
    return MPI_SUCCESS;
}

static void order(void) {
    begin(MPI_THREAD_SINGLE);
    if (rank == 0) on_finalize(use_all);
    use(MPI_COMM_WORLD);
    if (rank != 0) on_finalize(use_all);
    MPI_Finalize();
    if (acts != 1) fail("functions of MPI_Finalize", acts);
}

/* A block of two ints with a hole, whose address is in the type. */
static MPI_Datatype absolute(int *place) {
    MPI_Datatype made, type;
    MPI_Aint addresses[2];
    int lengths[2] = {1, 1};
    MPI_Get_address(place, &addresses[0]);
    MPI_Get_address(place + 2, &addresses[1]);
    MPI_Type_create_hindexed(2, lengths, addresses, MPI_INT, &made);
    MPI_Type_create_resized(made, 0, 3 * sizeof(int), &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&made);
    return type;
}

/* The calls that wait, and those that do not. */
static void bottom(void) {
    int given[3], *taken;
    begin(MPI_THREAD_SINGLE);
    use(MPI_COMM_WORLD);
    taken = malloc(sizeof(int) * 3 * ranks);
    for (int turn = 0; turn < 4; turn++) {
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Datatype from = absolute(given), to = absolute(taken);
        given[0] = rank, given[2] = rank + turn;
        for (int at = 0; at < 3 * ranks; at++) taken[at] = -1;
        switch (turn) {
        case 0: MPI_Allgather(MPI_BOTTOM, 1, from, MPI_BOTTOM, 1, to, MPI_COMM_WORLD); break;
        case 1:
            MPI_Gather(MPI_BOTTOM, 1, from, MPI_BOTTOM, 1, to, 0, MPI_COMM_WORLD);
            MPI_Bcast(MPI_BOTTOM, ranks, to, 0, MPI_COMM_WORLD);
            break;
        case 2:
            MPI_Iallgather(MPI_BOTTOM, 1, from, MPI_BOTTOM, 1, to, MPI_COMM_WORLD, &request);
            break;
        default: MPI_Allgather(MPI_BOTTOM, 1, from, MPI_BOTTOM, 1, to, MPI_COMM_WORLD);
        }
        MPI_Type_free(&from);
        MPI_Type_free(&to);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int at = 0; at < ranks; at++) {
            int *block = taken + 3 * at;
            if (block[0] != at || block[1] != -1 || block[2] != at + turn)
                fail("a block at MPI_BOTTOM", block[0]);
        }
    }
    free(taken);
}

/* The communicator goes when the last message has come, in a call on another one. */
static void freed(void) {
    begin(MPI_THREAD_MULTIPLE);
    for (int turn = 0; turn < 20; turn++) {
        int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks, given = rank + turn;
        int taken = -1;
        MPI_Comm copy;
        MPI_Request requests[2];
        MPI_Comm_dup(MPI_COMM_WORLD, &copy);
        use(copy);
        MPI_Irecv(&taken, 1, MPI_INT, left, 3, copy, &requests[0]);
        MPI_Barrier(copy);
        MPI_Isend(&given, 1, MPI_INT, right, 3, copy, &requests[1]);
        MPI_Comm_free(&copy);
        if (turn % 2) MPI_Barrier(MPI_COMM_WORLD);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        if (taken != left + turn) fail("a message", taken);
    }
}

static int heard;

static void hear(MPI_Comm *communicator, int *code, ...) {
    (void)communicator, (void)code;
    heard++;
}

/* The class of an error of which the program's handler has heard once. */
static int class_of(const char *what, int code) {
    int class = MPI_SUCCESS;
    if (code == MPI_SUCCESS || heard != 1) fail(what, heard);
    MPI_Error_class(code, &class);
    heard = 0;
    return class;
}

static int keep(MPI_Comm communicator, int key, void *value, void *state) {
    (void)communicator, (void)key, (void)value;
    return ++*(int *)state == 1 ? MPI_ERR_OTHER : MPI_SUCCESS;
}

/* A communicator whose delete function vetoes that it goes, once: `count` says how often it was
 * called. The first handler is the communicator's, the second one that of MPI_COMM_WORLD. */
static MPI_Comm kept(int *key, int *count, MPI_Errhandler own_handler, MPI_Errhandler of_world) {
    MPI_Comm own;
    MPI_Comm_dup(MPI_COMM_WORLD, &own);
    MPI_Comm_set_errhandler(own, own_handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, of_world);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    use(own);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, keep, key, count);
    MPI_Comm_set_attr(own, *key, NULL);
    return own;
}

/* One rank makes another call than the others, so the requests fail. */
static void call_differently(MPI_Comm communicator, int is_other, MPI_Request *request) {
    static int one = 1, all;
    if (is_other) MPI_Iallreduce(&one, &all, 1, MPI_INT, MPI_SUM, communicator, request);
    else MPI_Ibarrier(communicator, request);
}

/* The communicator is there still, so its handler hears of the failure. */
static void vetoed(void) {
    int key, count = 0, was_heard;
    MPI_Comm own;
    MPI_Errhandler handler;
    MPI_Request request;
    begin(MPI_THREAD_SINGLE);
    MPI_Comm_create_errhandler(hear, &handler);
    own = kept(&key, &count, handler, MPI_ERRORS_RETURN);
    call_differently(own, rank != 0, &request);
    if (MPI_Comm_free(&own) == MPI_SUCCESS || count != 1) fail("a delete function", count);
    was_heard = heard;
    if (MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS) fail("different calls", 0);
    if (heard != was_heard + 1) fail("what the handler heard", heard - was_heard);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Errhandler_free(&handler);
    MPI_Comm_free_keyval(&key);
}

static int strangers;

static void hear_strange(MPI_Comm *communicator, int *code, ...) {
    (void)communicator, (void)code;
    strangers++;
}

/* The call fails when the communicator is gone, and its handle may be another's. */
static void vetoed_once(void) {
    int key, count = 0, is_last;
    MPI_Comm own, other;
    MPI_Errhandler handler, strange;
    MPI_Request request;
    begin(MPI_THREAD_SINGLE);
    is_last = rank == ranks - 1;
    MPI_Comm_create_errhandler(hear, &handler);
    MPI_Comm_create_errhandler(hear_strange, &strange);
    own = kept(&key, &count, MPI_ERRORS_RETURN, handler);
    /* Nothing can fail before the others have freed it. */
    for (int from = 0; is_last && from < ranks - 1; from++)
        MPI_Recv(NULL, 0, MPI_INT, from, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    call_differently(own, is_last, &request);
    if (MPI_Comm_free(&own) == MPI_SUCCESS || count != 1) fail("a delete function", count);
    /* MPICH does not call the function again. */
    if (MPI_Comm_free(&own) != MPI_SUCCESS) fail("the second time", count);
    MPI_Comm_dup(MPI_COMM_SELF, &other);
    MPI_Comm_set_errhandler(other, strange);
    heard = 0;
    if (!is_last) MPI_Send(NULL, 0, MPI_INT, ranks - 1, 3, MPI_COMM_WORLD);
    if (MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS) fail("different calls", 0);
    if (!is_last && !heard) fail("MPI_COMM_WORLD's handler did not hear", heard);
    if (strangers) fail("what another's handler heard", strangers);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_free(&other);
    MPI_Errhandler_free(&handler);
    MPI_Errhandler_free(&strange);
    MPI_Comm_free_keyval(&key);
}

#define REFUSED(name, ...)                                                                         \
    do {                                                                                           \
        int class = class_of(#name, MPI_##name(__VA_ARGS__));                                      \
        if (class != class_of("the MPI's own", OWN(name)(__VA_ARGS__)))                            \
            fail("another error than the MPI's, " #name, class);                                   \
    } while (0)

static void refused(void) {
    int given[100], taken[100], count = -1;
    MPI_Comm own;
    MPI_Errhandler handler;
    MPI_Datatype type, null = MPI_DATATYPE_NULL;
    begin(MPI_THREAD_SINGLE);
    MPI_Comm_dup(MPI_COMM_WORLD, &own);
    MPI_Comm_create_errhandler(hear, &handler);
    MPI_Comm_set_errhandler(own, handler);
    use(own);
    /* Some builds of MPICH check no arguments. */
    int code = OWN(Bcast)(taken, count, MPI_INT, 0, own);
    if (code == MPI_SUCCESS) {
        if (rank == 0) printf("the MPI checks no arguments\n");
        return;
    }
    class_of("the MPI's own, a broadcast", code);
    /* Not committed. */
    MPI_Type_vector(3, 1, 2, MPI_INT, &type);
    REFUSED(Bcast, taken, 1, type, 0, own);
    REFUSED(Allgather, given, 1, type, taken, 3, MPI_INT, own);
    REFUSED(Alltoall, given, 3, MPI_INT, taken, 1, type, own);
    /* No result is asked for, and what is given is wrong. */
    REFUSED(Allgather, given, count, MPI_INT, taken, 0, MPI_INT, own);
    REFUSED(Allgather, given, 1, null, taken, 0, MPI_INT, own);
    use(own);
    MPI_Type_free(&type);
    MPI_Errhandler_free(&handler);
    MPI_Comm_free(&own);
}

/* Only Open MPI 4.1 says so: the others crash, in MPI_Pack as in their own MPI_Bcast. The root's
 * second call is the one that the others wait for. */
static void spoilt(void) {
    int data[5] = {0};
    MPI_Comm own;
    MPI_Errhandler handler;
    MPI_Datatype type;
    begin(MPI_THREAD_SINGLE);
    MPI_Comm_dup(MPI_COMM_WORLD, &own);
    MPI_Comm_create_errhandler(hear, &handler);
    MPI_Comm_set_errhandler(own, handler);
    MPI_Type_vector(3, 1, 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    use(own);
    if (rank == 0) class_of("nothing to pack", MPI_Bcast(NULL, 1, type, 0, own));
    data[0] = rank ? -1 : 7;
    MPI_Bcast(data, 1, type, 0, own);
    if (data[0] != 7) fail("a broadcast behind one that failed", data[0]);
    MPI_Type_free(&type);
    MPI_Errhandler_free(&handler);
    MPI_Comm_free(&own);
}

/* The calls of `use` come first, so that these are served; some MPIs refuse them. */
static void below(void) {
    begin(MPI_THREAD_SINGLE);
    use(MPI_COMM_WORLD);
    for (int turn = 0; turn < 16; turn++) {
        int given = rank + turn, wanted = rank * turn + rank * (rank - 1) / 2, taken[2] = {-1, -1};
        MPI_Request request;
        MPI_Exscan(&given, rank ? &taken[0] : turn % 2 ? NULL : &given, 1, MPI_INT, MPI_SUM,
                   MPI_COMM_WORLD);
        MPI_Iexscan(&given, rank ? &taken[1] : turn % 2 ? NULL : &given, 1, MPI_INT, MPI_SUM,
                    MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (rank && taken[0] != wanted) fail("an exscan", taken[0]);
        if (rank && taken[1] != wanted) fail("an exscan that does not wait", taken[1]);
        if (given != rank + turn) fail("what is given", given);
    }
}

/* Intel MPI refuses it; Open MPI crashes, and MPICH answers that all is well. */
static void nowhere(void) {
    MPI_Comm own;
    MPI_Errhandler handler;
    int given = 1, taken;
    begin(MPI_THREAD_SINGLE);
    MPI_Comm_dup(MPI_COMM_WORLD, &own);
    MPI_Comm_create_errhandler(hear, &handler);
    MPI_Comm_set_errhandler(own, handler);
    use(own);
    REFUSED(Ibarrier, own, NULL);
    REFUSED(Iallreduce, &given, &taken, 1, MPI_INT, MPI_SUM, own, NULL);
    use(own);
    MPI_Errhandler_free(&handler);
    MPI_Comm_free(&own);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    int is_over = 0;
    if (!strcmp(what, "environment")) environment();
    if (!strcmp(what, "deleted")) deleted();
    if (!strcmp(what, "deferred")) deferred();
    if (!strcmp(what, "vetoed")) vetoed();
    if (!strcmp(what, "vetoed_once")) vetoed_once();
    if (!strcmp(what, "ended")) ended();
    if (!strcmp(what, "failed")) failed();
    if (!strcmp(what, "exit")) at_exit();
    if (!strcmp(what, "order")) order();
    if (!strcmp(what, "bottom")) bottom();
    if (!strcmp(what, "nowhere")) nowhere();
    if (!strcmp(what, "freed")) freed();
    if (!strcmp(what, "refused")) refused();
    if (!strcmp(what, "spoilt")) spoilt();
    if (!strcmp(what, "below")) below();
    if (!strcmp(what, "sessionless")) sessionless();
#ifdef HAS_SESSIONS
    if (!strcmp(what, "early")) early();
    if (!strcmp(what, "across")) across();
    if (!strcmp(what, "late")) late(0);
    if (!strcmp(what, "later")) late(1);
#endif
    MPI_Initialized(&is_over);
    if (!is_over) return printf("no such case, or no sessions\n"), 0;
    MPI_Finalized(&is_over);
    if (!is_over) MPI_Finalize();
    if (rank == 0) printf("all is well\n");
    return 0;
}
