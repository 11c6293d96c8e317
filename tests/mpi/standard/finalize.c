// SPDX-License-Identifier: Apache-2.0 OR MIT
// MPI_Finalize (MPI 4.1, section 11.2.2): what a rank has sent before its MPI_Finalize arrives,
// though the receiver comes late. The receiver says what it got; nobody is left to ask.
#include "standard.h"

#include <signal.h>
#include <unistd.h>

enum { DATA = 1, BYTES = 200000, SMALL = 100 };

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
        char *small = patterned(SMALL, 1), *buffered = patterned(BYTES, 2);
        MPI_Buffer_attach(room, sizeof room);
        MPI_Send(small, SMALL, MPI_BYTE, 1, DATA, MPI_COMM_WORLD);
        MPI_Bsend(buffered, BYTES, MPI_BYTE, 1, DATA, MPI_COMM_WORLD);
        memset(buffered, 0, BYTES);
        free(small);
        free(buffered);
    } else if (here == 1) {
        char *into = filled(BYTES, 0);
        compute(0.2);
        MPI_Recv(into, BYTES, MPI_BYTE, 0, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (size_t i = 0; i < SMALL; i++) bad |= (unsigned char)into[i] != pattern(1, i);
        MPI_Recv(into, BYTES, MPI_BYTE, 0, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (size_t i = 0; i < BYTES; i++) bad |= (unsigned char)into[i] != pattern(2, i);
        printf(bad ? "not ok finalize/arrives_late: bytes are wrong\n"
                   : "ok finalize/arrives_late\n");
        fflush(stdout);
        free(into);
    }
    MPI_Finalize();
    if (here == 0) printf("end finalize\n");
    return bad;
}
