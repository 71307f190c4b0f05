/* refuse-io-uring ERRNO-NUMBER SYSCALL[,SYSCALL...] PROGRAM [ARGUMENT...]
 *
 * Runs the program with these system calls (setup, enter, register of io_uring) refused with that
 * error, as container runtimes do with a seccomp filter. Exit 77: no filter can be set here. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define CALLS_MAX 3
#define EXIT_SKIPPED 77

/* The same numbers on every architecture. */
static int number_of(const char* name) {
  if (strcmp(name, "setup") == 0) return 425;
  if (strcmp(name, "enter") == 0) return 426;
  if (strcmp(name, "register") == 0) return 427;
  fprintf(stderr, "refuse-io-uring: %s is not setup, enter or register\n", name);
  exit(2);
}

static void refuse(const int* calls, unsigned count, int error) {
  struct sock_filter code[CALLS_MAX + 3];
  unsigned length = 0;
  code[length++] =
      (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
  for (unsigned at = 0; at < count; ++at) {
    const unsigned char to_refusal = (unsigned char)(count - at);
    code[length++] =
        (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[at], to_refusal, 0);
  }
  code[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  code[length++] =
      (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error);
  const struct sock_fprog program = {(unsigned short)length, code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    fprintf(stderr, "refuse-io-uring: no filter: %s\n", strerror(errno));
    exit(EXIT_SKIPPED);
  }
}

int main(int argc, char** argv) {
  if (argc < 4) {
    fprintf(stderr, "usage: refuse-io-uring ERRNO-NUMBER SYSCALL[,SYSCALL...] PROGRAM...\n");
    return 2;
  }
  const int error = atoi(argv[1]);
  int calls[CALLS_MAX];
  unsigned count = 0;
  for (char* name = strtok(argv[2], ","); name != NULL && count < CALLS_MAX;
       name = strtok(NULL, ",")) {
    calls[count++] = number_of(name);
  }
  refuse(calls, count, error);
  execv(argv[3], argv + 3);
  fprintf(stderr, "refuse-io-uring: %s: %s\n", argv[3], strerror(errno));
  return 1;
}
