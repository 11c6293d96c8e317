// SPDX-License-Identifier: Apache-2.0 OR MIT
// MPI_Finalize (MPI 4.1, section 11.2.2): what a rank has sent before its MPI_Finalize arrives,
// though the receiver comes late. The receiver says what it got; nobody is left to ask.
#include "standard.h"

#include <signal.h>
#include <unistd.h>

enum { DATA = 1, BYTES = 200000 };

// What MPI_Send sends, one behind the other.
static const int lengths[] = {100, 20000, 60000, 8192, 65536};
enum { COUNT = sizeof lengths / sizeof *lengths };

static void out_of_time(int signal) {
    static const char line[] = "not ok finalize/arrives_late: did not end in time\n";
    (void)signal;
    if (write(STDOUT_FILENO, line, sizeof line - 1) < 0) _exit(4);
    _exit(3);
}

int main(int argc, char **argv) {
    int here, bad = 0;
    signal(SIGALRM, out_of_time);
    alarm(60);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &here);
    if (here == 0) {
        static char room[BYTES + 4096 + MPI_BSEND_OVERHEAD];
        char *buffered = patterned(BYTES, COUNT);
        MPI_Buffer_attach(room, sizeof room);
        for (unsigned i = 0; i < COUNT; i++) {
            char *from = patterned((size_t)lengths[i], i);
            MPI_Send(from, lengths[i], MPI_BYTE, 1, DATA, MPI_COMM_WORLD);
            memset(from, 0, (size_t)lengths[i]);
            free(from);
        }
        MPI_Bsend(buffered, BYTES, MPI_BYTE, 1, DATA, MPI_COMM_WORLD);
        memset(buffered, 0, BYTES);
        free(buffered);
    } else if (here == 1) {
        char *into = filled(BYTES, 0);
        compute(0.2);
        for (unsigned i = 0; i <= COUNT; i++) {
            size_t length = i < COUNT ? (size_t)lengths[i] : BYTES;
            MPI_Recv(into, BYTES, MPI_BYTE, 0, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (size_t at = 0; at < length; at++)
                bad |= (unsigned char)into[at] != pattern(i, at);
        }
        printf(bad ? "not ok finalize/arrives_late: bytes are wrong\n"
                   : "ok finalize/arrives_late\n");
        fflush(stdout);
        free(into);
    }
    MPI_Finalize();
    if (here == 0) printf("end finalize\n");
    return bad;
}
