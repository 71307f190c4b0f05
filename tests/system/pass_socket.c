/* pass-socket NAME PROGRAM --config DIRECTORY/FILE [ARGUMENT...]
 *
 * Runs the program with a socket that listens at DIRECTORY/NAME already, passed as a service
 * manager passes it: descriptor 3, LISTEN_FDS, LISTEN_PID. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define FIRST_PASSED 3
#define BACKLOG 64

int main(int count, char** arguments) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  char pid[32];
  const char* slash;
  int fd;
  if (count < 5 || strcmp(arguments[3], "--config") != 0) {
    fprintf(stderr, "usage: pass-socket NAME PROGRAM --config DIRECTORY/FILE [ARGUMENT...]\n");
    return 2;
  }
  slash = strrchr(arguments[4], '/');
  if (slash == NULL ||
      snprintf(address.sun_path, sizeof address.sun_path, "%.*s/%s", (int)(slash - arguments[4]),
               arguments[4], arguments[1]) >= (int)sizeof address.sun_path) {
    fprintf(stderr, "pass-socket: no such directory, or a path too long\n");
    return 2;
  }
  fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
  unlink(address.sun_path);
  if (fd < 0 || bind(fd, (struct sockaddr*)&address, sizeof address) != 0 ||
      listen(fd, BACKLOG) != 0) {
    perror("pass-socket");
    return 1;
  }
  if (fd != FIRST_PASSED) {
    if (dup2(fd, FIRST_PASSED) < 0) return 1;
    close(fd);
  }
  snprintf(pid, sizeof pid, "%ld", (long)getpid());
  setenv("LISTEN_FDS", "1", 1);
  setenv("LISTEN_PID", pid, 1);
  execv(arguments[2], arguments + 2);
  perror(arguments[2]);
  return 1;
}
