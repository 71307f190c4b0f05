#include "daemon/admin/answer.hpp"

namespace pickd::admin {

namespace {

const char* phrase(int status) {
  switch (status) {
    case 200: return "OK";
    case 400: return "Bad Request";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 413: return "Content Too Large";
    case 431: return "Request Header Fields Too Large";
    case 503: return "Service Unavailable";
    case 505: return "HTTP Version Not Supported";
    default: return "";
  }
}

}  // namespace

Answer words(int status, std::string text) {
  Answer answer;
  answer.status = status;
  answer.body = std::move(text) + "\n";
  return answer;
}

std::string head_of(const Answer& answer, bool keep_alive) {
  std::string head = "HTTP/1.1 " + std::to_string(answer.status) + ' ' + phrase(answer.status) +
                     "\r\nContent-Type: " + answer.content_type +
                     "\r\nContent-Length: " + std::to_string(answer.body.size()) +
                     "\r\nCache-Control: no-store"
                     "\r\nX-Content-Type-Options: nosniff"
                     "\r\nCross-Origin-Resource-Policy: same-origin"
                     "\r\nReferrer-Policy: no-referrer\r\n";
  for (const auto& [name, value] : answer.fields) head += name + ": " + value + "\r\n";
  if (!keep_alive) head += "Connection: close\r\n";
  return head + "\r\n";
}

}  // namespace pickd::admin
