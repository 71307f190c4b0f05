// pickd's asynchronous queue in the event loop: submissions, answers, reports. Knows of an exchange
// no more than what it wants picked.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proxy.h"

enum { DEPTH = 1024, REPORTS_MAX = 65536 };
static const struct timeval room_pause = {0, 500};

static void look(evutil_socket_t fd, short what, void* of);

int picks_open(picks* p, const proxy_options* options, struct event_base* base) {
  pickd_options open = PICKD_OPTIONS_INIT;
  int code;
  open.socket_path = options->socket;
  open.name = "c-proxy";
  code = pickd_open(&open, &p->client);
  if (code != 0) return code;
  code = pickd_queue_open(p->client, DEPTH, &p->queue);
  if (code != 0) return code;
  p->result = pickd_result_new();
  p->event = event_new(base, pickd_queue_event_fd(p->queue), EV_READ | EV_PERSIST, look, p);
  p->timer = evtimer_new(base, look, p);
  if (p->result == NULL || p->event == NULL || p->timer == NULL) return -ENOMEM;
  return event_add(p->event, NULL) == 0 ? 0 : -ENOMEM;
}

void picks_close(picks* p) {
  if (p->event != NULL) event_free(p->event);
  if (p->timer != NULL) event_free(p->timer);
  pickd_queue_close(p->queue);
  pickd_result_free(p->result);
  pickd_close(p->client);
  free(p->reports);
}

// Lets the loop take answers after the callbacks that are ready now: what they submit is rung for
// once, together.
static void look_soon(picks* p) { event_active(p->event, EV_READ, 0); }

// 0, or why not; -EAGAIN: no room.
static int submit(picks* p, exchange* it) {
  const int code = pickd_queue_submit(p->queue, &it->wanted, (uint64_t)(uintptr_t)it, &it->ticket);
  if (code == 0) {
    it->phase = PHASE_PICKING;
    ++p->outstanding;
  }
  return code;
}

void picks_ask(picks* p, exchange* it) {
  const int code = p->first == NULL ? submit(p, it) : -EAGAIN;
  if (code == -EAGAIN) {
    it->phase = PHASE_IN_LINE;
    it->next = NULL;
    if (p->first == NULL)
      p->first = it;
    else
      p->last->next = it;
    p->last = it;
  }
  look_soon(p);
  if (code != 0 && code != -EAGAIN) exchange_refused(it, code);
}

static void leave_line(picks* p, const exchange* it) {
  exchange** link = &p->first;
  exchange* before = NULL;
  while (*link != it) {
    before = *link;
    link = &before->next;
  }
  *link = it->next;
  if (p->last == it) p->last = before;
}

void picks_forget(picks* p, exchange* it) {
  if (it->phase == PHASE_IN_LINE) {
    leave_line(p, it);
  } else if (it->phase == PHASE_PICKING && pickd_queue_cancel(p->queue, it->ticket) == 0) {
    --p->outstanding;
    if (p->first != NULL) look_soon(p);  // there is room
  }
}

// Submits those in line as far as there is room.
static void admit(picks* p) {
  while (p->first != NULL) {
    exchange* it = p->first;
    const int code = submit(p, it);
    if (code == -EAGAIN) break;
    leave_line(p, it);
    if (code != 0)
      exchange_refused(it, code);
    else
      look_soon(p);  // rings for it
  }
  if (p->first != NULL && p->outstanding == 0) evtimer_add(p->timer, &room_pause);
}

// Hands over reports that found the ring full.
static void hand_over(picks* p) {
  size_t done = 0;
  for (; done < p->report_count; ++done) {
    kept_report* kept = &p->reports[done];
    if (kept->endpoint[0] != '\0') kept->info.endpoint = pickd_string(kept->endpoint);
    if (pickd_queue_report(p->queue, &kept->info) == -EAGAIN) break;
  }
  p->report_count -= done;
  memmove(p->reports, p->reports + done, p->report_count * sizeof *p->reports);
  if (p->report_count > 0) evtimer_add(p->timer, &room_pause);
}

static void look(evutil_socket_t fd, short what, void* of) {
  picks* p = of;
  uint64_t answered;
  (void)fd;
  (void)what;
  while (pickd_queue_poll(p->queue, p->result, &answered) == 1) {
    --p->outstanding;
    exchange_picked((exchange*)(uintptr_t)answered, p->result);
  }
  if (p->report_count > 0) hand_over(p);
  if (p->first != NULL) admit(p);
}

void picks_report(picks* p, const pickd_report_info* report) {
  kept_report* kept;
  // In order: one that waits goes first.
  if (p->report_count == 0 && pickd_queue_report(p->queue, report) != -EAGAIN) {
    if (p->outstanding > 0) look_soon(p);  // rings for it
    return;
  }
  if (p->report_count == p->report_room) {
    const size_t room = p->report_room == 0 ? 64 : 2 * p->report_room;
    kept = room > REPORTS_MAX ? NULL : realloc(p->reports, room * sizeof *kept);
    if (kept == NULL) return;  // its reservation ends with its lease
    p->reports = kept;
    p->report_room = room;
  }
  kept = &p->reports[p->report_count++];
  kept->info = *report;
  snprintf(kept->endpoint, sizeof kept->endpoint, "%.*s", (int)report->endpoint.size,
           report->endpoint.size == 0 ? "" : (const char*)report->endpoint.data);
  evtimer_add(p->timer, &room_pause);
}
