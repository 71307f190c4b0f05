// Releases that do not fit each other: a daemon of another layout answers the library, and a
// library of another layout speaks to the daemon. Each refuses and says why; what only adds is
// read.
//
// The other daemon is a socket of the test that answers a hello with what the real daemon handed
// out, doctored.
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "abi/state_layout.hpp"
#include "tests/system/raw_control.hpp"

namespace pickd::systests {
namespace {

// What the other daemon says to the channel that a library asks for when it takes the segment.
constexpr int kContent = -EMFILE;

using Doctor = std::function<void(abi::SegmentHeader& segment)>;

// A daemon's socket that answers the first hello and nothing else.
class OtherDaemon {
 public:
  OtherDaemon(const std::string& path, std::uint16_t layout_major, base::Fd segment)
      : path_(path),
        segment_(std::move(segment)),
        listener_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener_.get(), 4), 0);
    thread_ = std::thread([this, layout_major] { answer(layout_major); });
  }
  OtherDaemon(const OtherDaemon&) = delete;
  OtherDaemon& operator=(const OtherDaemon&) = delete;
  ~OtherDaemon() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
    ::unlink(path_.c_str());
  }

 private:
  void answer(std::uint16_t layout_major) {
    const base::Fd peer(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!peer.valid()) return;
    std::vector<std::uint8_t> bytes(abi::kControlMessageBytesMax);
    const ssize_t got = ::recv(peer.get(), bytes.data(), bytes.size(), 0);
    if (got <= 0) return;
    const std::uint32_t number = fb::GetMessage(bytes.data())->number();
    flatbuffers::FlatBufferBuilder builder;
    const auto version = builder.CreateString("9.9.9");
    const auto welcome = fb::CreateWelcome(builder, layout_major, 7, 1, 1, 2048, version);
    fb::FinishMessageBuffer(builder,
                            fb::CreateMessage(builder, number, fb::Body::Welcome, welcome.Union()));
    send_with(peer.get(), builder);
    // What comes next is refused: the library was content with the welcome.
    while (::recv(peer.get(), bytes.data(), bytes.size(), 0) > 0) {
      builder.Clear();
      const auto text = builder.CreateString("no more");
      const auto outcome = fb::CreateOutcome(builder, kContent, text);
      fb::FinishMessageBuffer(builder,
                              fb::CreateMessage(builder, fb::GetMessage(bytes.data())->number(),
                                                fb::Body::Outcome, outcome.Union()));
      ::send(peer.get(), builder.GetBufferPointer(), builder.GetSize(), MSG_NOSIGNAL);
    }
  }
  void send_with(int peer, const flatbuffers::FlatBufferBuilder& builder) const {
    iovec piece{builder.GetBufferPointer(), builder.GetSize()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    const int fd = segment_.get();
    std::memcpy(CMSG_DATA(head), &fd, sizeof fd);
    EXPECT_GT(::sendmsg(peer, &message, MSG_NOSIGNAL), 0);
  }

  std::string path_;
  base::Fd segment_;
  base::Fd listener_;
  std::thread thread_;
};

class SystemVersions : public testing::Test {
 protected:
  // The real daemon's state segment, copied and doctored.
  base::Fd doctored(const Doctor& doctor) {
    RawControl raw(daemon_);
    EXPECT_TRUE(raw.hello().has_value());
    EXPECT_EQ(raw.descriptors().size(), 1U);
    const int from = raw.descriptors()[0].get();
    const off_t bytes = ::lseek(from, 0, SEEK_END);
    base::Fd copy(::memfd_create("doctored", MFD_CLOEXEC));
    EXPECT_EQ(::ftruncate(copy.get(), bytes), 0);
    void* source = ::mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ, MAP_SHARED, from, 0);
    void* target = ::mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE,
                          MAP_SHARED, copy.get(), 0);
    EXPECT_NE(source, MAP_FAILED);
    EXPECT_NE(target, MAP_FAILED);
    std::memcpy(target, source, abi::kPageBytes);
    doctor(*static_cast<abi::SegmentHeader*>(target));
    ::munmap(source, static_cast<std::size_t>(bytes));
    ::munmap(target, static_cast<std::size_t>(bytes));
    return copy;
  }
  // What pickd_open() says to a daemon that welcomes with this layout and hands this out.
  int open(std::uint16_t layout_major, const Doctor& doctor) {
    const std::string path = daemon_.directory() + "/other.sock";
    const OtherDaemon other(path, layout_major, doctored(doctor));
    pickd_options options = PICKD_OPTIONS_INIT;
    options.socket_path = path.c_str();
    options.connect_timeout_ms = 60'000;
    pickd_client* client = nullptr;
    const int code = pickd_open(&options, &client);
    EXPECT_EQ(client, nullptr);
    return code;
  }
  static void nothing(abi::SegmentHeader& /*segment*/) {}

  Daemon daemon_;
};

TEST_F(SystemVersions, TheLibraryTakesTheUndoctoredOne) {
  EXPECT_EQ(open(abi::kLayoutMajor, nothing), kContent) << "else the others prove nothing";
}

TEST_F(SystemVersions, TheLibraryRefusesADaemonOfAnotherLayoutMajor) {
  EXPECT_EQ(open(abi::kLayoutMajor + 1, nothing), -EPROTONOSUPPORT);
  EXPECT_EQ(open(0, nothing), -EPROTONOSUPPORT);
  EXPECT_NE(std::string(pickd_strerror(-EPROTONOSUPPORT)).find("layout"), std::string::npos);
}

TEST_F(SystemVersions, TheLibraryRefusesASegmentOfAnotherLayoutMajor) {
  EXPECT_EQ(open(abi::kLayoutMajor,
                 [](abi::SegmentHeader& segment) {
                   ++segment.layout_major;
                   segment.version =
                       abi::segment_version(segment.layout_major, segment.layout_minor);
                 }),
            -EPROTONOSUPPORT);
}

TEST_F(SystemVersions, TheLibraryRefusesAFeatureThatItDoesNotKnow) {
  for (std::uint32_t bit = 0; bit < 32; ++bit) {
    const bool known = (abi::kFeaturesKnown >> bit & 1) != 0;
    EXPECT_EQ(open(abi::kLayoutMajor,
                   [bit](abi::SegmentHeader& segment) { segment.features |= 1U << bit; }),
              known ? kContent : -EPROTONOSUPPORT)
        << bit;
  }
}

TEST_F(SystemVersions, TheLibraryReadsANewerMinorThatOnlyAdds) {
  EXPECT_EQ(open(abi::kLayoutMajor,
                 [](abi::SegmentHeader& segment) {
                   segment.layout_minor = abi::kLayoutMinor + 5;
                   segment.version =
                       abi::segment_version(segment.layout_major, segment.layout_minor);
                   segment.header_bytes += 64;  // fields that this library does not know
                 }),
            kContent);
}

TEST_F(SystemVersions, TheLibraryRefusesASegmentThatIsNone) {
  const std::vector<Doctor> doctors = {
      [](abi::SegmentHeader& segment) { segment.version = 0; },
      [](abi::SegmentHeader& segment) { segment.magic = abi::kChannelMagic; },
      [](abi::SegmentHeader& segment) { segment.byte_order_mark = 0x04030201; },
      [](abi::SegmentHeader& segment) { segment.total_bytes += 4096; },
      [](abi::SegmentHeader& segment) { segment.header_bytes = 64; },
  };
  for (std::size_t at = 0; at < doctors.size(); ++at) {
    EXPECT_EQ(open(abi::kLayoutMajor, doctors[at]), -EPROTO) << at;
  }
}

TEST_F(SystemVersions, TheDaemonRefusesALibraryOfAnotherLayoutMajorAndServesTheNext) {
  for (const std::uint16_t major : {0, abi::kLayoutMajor + 1, 0xFFFF}) {
    RawControl raw(daemon_);
    const auto reply = raw.hello(major);
    ASSERT_TRUE(reply.has_value());
    EXPECT_EQ(reply->code(), -EPROTONOSUPPORT);
    EXPECT_NE(reply->words().find("the library speaks layout " + std::to_string(major) + "."),
              std::string::npos)
        << reply->words();
    EXPECT_NE(reply->words().find("install the same release"), std::string::npos);
    EXPECT_TRUE(raw.descriptors().empty()) << "it gets no segment that it could misread";
  }
  const Client client(daemon_);
  const Result result;
  EXPECT_EQ(pick(client, Request("hello"), result), 0);
}

TEST_F(SystemVersions, TheDaemonTakesALibraryOfANewerMinor) {
  RawControl raw(daemon_);
  const auto reply = raw.ask([](flatbuffers::FlatBufferBuilder& builder) {
    const auto name = builder.CreateString("newer");
    return fb::CreateHello(builder, abi::kLayoutMajor, abi::kLayoutMinor + 9, 1, name, 2048, 0);
  });
  ASSERT_TRUE(reply.has_value());
  ASSERT_NE(reply->as<fb::Welcome>(), nullptr) << reply->words();
  EXPECT_EQ(reply->as<fb::Welcome>()->layout_minor(), abi::kLayoutMinor)
      << "so that it keeps to what this daemon knows";
}

}  // namespace
}  // namespace pickd::systests
