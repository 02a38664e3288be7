#include "rowlock/keyring.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "audit/keyring_keys.hpp"
#include "base/hex.hpp"
#include "rowlock/error.hpp"

namespace rowlock {

namespace {

namespace fs = std::filesystem;

class KeyringFile : public testing::Test {
  protected:
    KeyringFile() {
        std::string pattern = (fs::temp_directory_path() / "rowlock-keyring-XXXXXX").string();
        folder_ = ::mkdtemp(pattern.data());
        path_ = folder_ / "keyring.json";
    }
    ~KeyringFile() override {
        std::error_code ignored;
        fs::remove_all(folder_, ignored);
    }

    [[nodiscard]] std::string content() const {
        std::ostringstream text;
        text << std::ifstream(path_).rdbuf();
        return text.str();
    }

    void write(std::string_view text) const {
        std::ofstream(path_) << text;
        ::chmod(path_.c_str(), 0600);
    }

    [[nodiscard]] std::size_t files() const {
        return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
    }

    fs::path folder_;
    fs::path path_;
};

template <class Action>
std::string setup_error_of(Action&& action) {
    try {
        action();
    } catch (const SetupError& error) {
        EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
        return error.what();
    }
    ADD_FAILURE() << "no SetupError was thrown";
    return {};
}

void expect_says(const std::string& message, std::initializer_list<std::string> parts) {
    for (const std::string& part : parts)
        EXPECT_NE(message.find(part), std::string::npos) << part << "\n is not in: " << message;
}

TEST_F(KeyringFile, GivesBackTheKeysThatWereWritten) {
    const Keyring keyring = Keyring::generate().rotated().rotated();
    keyring.create_file(path_);
    const Keyring loaded = Keyring::load(path_);
    EXPECT_EQ(loaded.ids(), keyring.ids());
    EXPECT_EQ(loaded.active_id(), keyring.active_id());
    for (const std::string& id : keyring.ids())
        EXPECT_EQ(loaded.keys().find(id)->secret, keyring.keys().find(id)->secret);
    EXPECT_EQ(files(), 1U);
}

TEST_F(KeyringFile, IsMadeWithMode0600AndItsFoldersWith0700WhateverTheUmask) {
    const fs::path deep = folder_ / "a" / "b" / "keyring.json";
    const mode_t before = ::umask(0);
    Keyring::generate().create_file(deep);
    ::umask(0277);
    Keyring::generate().create_file(path_);
    ::umask(before);
    struct stat status{};
    ASSERT_EQ(::stat(deep.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777U, 0600U);
    ASSERT_EQ(::stat((folder_ / "a").c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777U, 0700U);
    ASSERT_EQ(::stat(path_.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777U, 0600U);
}

TEST_F(KeyringFile, IsNeverOverwrittenByANewOne) {
    Keyring::generate().create_file(path_);
    const std::string before = content();
    expect_says(setup_error_of([&] { Keyring::generate().create_file(path_); }), {path_.string(), "already there"});
    EXPECT_EQ(content(), before);
    const fs::path dangling = folder_ / "link";
    fs::create_symlink(folder_ / "nowhere", dangling);
    setup_error_of([&] { Keyring::generate().create_file(dangling); });
    EXPECT_FALSE(fs::exists(folder_ / "nowhere"));
    EXPECT_EQ(files(), 2U);
}

TEST_F(KeyringFile, IsReplacedInOneStepAndKeepsItsMode) {
    const Keyring keyring = Keyring::generate();
    keyring.create_file(path_);
    ASSERT_EQ(::chmod(path_.c_str(), 0400), 0);
    const fs::path link = folder_ / "link";
    fs::create_symlink(path_, link);
    keyring.rotated().replace_file(link);
    EXPECT_TRUE(fs::is_symlink(link));
    EXPECT_EQ(Keyring::load(path_).ids().size(), 2U);
    struct stat status{};
    ASSERT_EQ(::stat(path_.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777U, 0400U);
    EXPECT_EQ(files(), 2U);
}

TEST_F(KeyringFile, IsNotReplacedByOneThatLacksAKeyOfIt) {
    const Keyring keyring = Keyring::generate();
    keyring.create_file(path_);
    const Keyring mine = keyring.rotated();
    keyring.rotated().replace_file(path_);
    const std::string before = content();
    expect_says(setup_error_of([&] { mine.replace_file(path_); }), {path_.string(), "would be lost"});
    EXPECT_EQ(content(), before);
    EXPECT_EQ(files(), 1U);
}

TEST_F(KeyringFile, MustBeThereToBeReplaced) {
    expect_says(setup_error_of([&] { Keyring::generate().replace_file(path_); }),
                {path_.string(), "rowlock keys new --keyring"});
    EXPECT_EQ(files(), 0U);
}

TEST_F(KeyringFile, ThatIsMissingIsToldWithWhatToDo) {
    expect_says(setup_error_of([&] { (void)Keyring::load(path_); }),
                {"there is no keyring at " + path_.string(), "rowlock keys new --keyring " + path_.string()});
    expect_says(setup_error_of([&] { (void)Keyring::load(folder_ / "a b"); }),
                {"--keyring '" + (folder_ / "a b").string() + "'"});
}

TEST_F(KeyringFile, IsRefusedWithAnyModeBut0600And0400) {
    Keyring::generate().create_file(path_);
    for (mode_t mode = 0; mode <= 07777; ++mode) {
        ASSERT_EQ(::chmod(path_.c_str(), mode), 0);
        if (mode == 0600 || mode == 0400) {
            EXPECT_NO_THROW((void)Keyring::load(path_)) << mode;
            continue;
        }
        // Without the right to read, only root comes as far as the mode.
        const std::string message = setup_error_of([&] { (void)Keyring::load(path_); });
        if (::geteuid() == 0) expect_says(message, {path_.string(), "chmod 600 " + path_.string()});
    }
}

TEST_F(KeyringFile, MustBeARegularFile) {
    expect_says(setup_error_of([&] { (void)Keyring::load(folder_); }), {"not a regular file"});
    ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
    expect_says(setup_error_of([&] { (void)Keyring::load(path_); }), {"not a regular file"});
}

TEST_F(KeyringFile, MustBelongToTheUserUnlessThatIsRoot) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
    Keyring::generate().create_file(path_);
    ASSERT_EQ(::chown(path_.c_str(), 12345, 12345), 0);
    EXPECT_NO_THROW((void)Keyring::load(path_));
    const Keyring keyring = Keyring::load(path_);
    keyring.rotated().replace_file(path_);
    struct stat status{};
    ASSERT_EQ(::stat(path_.c_str(), &status), 0);
    EXPECT_EQ(status.st_uid, 12345U);
    ASSERT_EQ(::chmod(folder_.c_str(), 0755), 0);
    ASSERT_EQ(::seteuid(12346), 0);
    const std::string message = setup_error_of([&] { (void)Keyring::load(path_); });
    ASSERT_EQ(::seteuid(0), 0);
    EXPECT_FALSE(message.empty());
}

TEST_F(KeyringFile, IsRefusedWhenItIsDamaged) {
    const Keyring keyring = Keyring::generate();
    keyring.create_file(path_);
    const std::string good = content();
    const std::string& id = keyring.active_id();
    const std::string digits = to_hex(keyring.keys().find(id)->secret);
    const std::string key = R"({"id": ")" + id + R"(", "key": ")" + digits + "\"}";
    const auto file = [&](const std::string& active, const std::string& keys) {
        return R"({"format": "rowlock-keyring-1", "active": ")" + active + R"(", "keys": [)" + keys + "]}";
    };
    EXPECT_NO_THROW((void)Keyring::parse(file(id, key), "a test"));
    std::string other_digit = digits;
    other_digit[10] = other_digit[10] == '0' ? '1' : '0';
    const std::vector<std::pair<std::string, std::string>> damages{
        {"", "the text is empty"},
        {good.substr(0, good.size() / 2), "ends inside a string"},
        {"[]", "expected an object"},
        {R"({"format": "rowlock-keyring-2", "active": "x", "keys": []})", "rowlock-keyring-1"},
        {R"({"format": 1})", "no string"},
        {R"({"format": "rowlock-keyring-1", "active": "x"})", "no \"keys\""},
        {R"({"format": "rowlock-keyring-1", "active": "x", "keys": [], "more": 1})", "unknown member \"more\""},
        {R"({"format": "rowlock-keyring-1", "active": "x", "keys": 7})", "expected an array"},
        {file("k000000000000", key), "the active key"},
        {file(id, ""), "the active key"},
        {file(id, "7"), "key number 1"},
        {file(id, key + "," + key), "twice"},
        {file(id, R"({"id": ")" + id + "\"}"), "key number 1 has no \"key\""},
        {file(id, R"({"id": ")" + id + R"(", "key": "00"})"), "64 hexadecimal digits"},
        {file(id, R"({"id": ")" + id + R"(", "key": ")" + std::string(64, 'g') + "\"}"), "64 hexadecimal digits"},
        {file(id, R"({"id": ")" + id + R"(", "key": ")" + other_digit + "\"}"), "do not belong together"},
    };
    for (const auto& [text, says] : damages) {
        write(text);
        const std::string message = setup_error_of([&] { (void)Keyring::load(path_); });
        expect_says(message, {path_.string(), "is damaged", says});
        EXPECT_EQ(message.find(digits), std::string::npos) << "a key in an error message";
    }
    write(std::string((1U << 20U) + 1, ' '));
    expect_says(setup_error_of([&] { (void)Keyring::load(path_); }), {"more than any keyring"});
}

TEST(Keyring, NamesAKeyByTheKeyItself) {
    std::array<std::byte, 32> secret{};
    for (unsigned i = 0; i < 32; ++i) secret[i] = static_cast<std::byte>(i);
    // Recomputed by scripts/check_vectors.py.
    EXPECT_EQ(key_id_of(secret), "k952f58dee468");
}

TEST(Keyring, RotatedHasTheOldKeysAndANewActiveOne) {
    const Keyring first = Keyring::generate();
    const Keyring second = first.rotated();
    EXPECT_EQ(first.ids().size(), 1U);
    EXPECT_EQ(second.ids().size(), 2U);
    EXPECT_TRUE(second.contains(first.active_id()));
    EXPECT_FALSE(first.contains(second.active_id()));
    EXPECT_NE(first.active_id(), second.active_id());
    EXPECT_FALSE(first.contains(""));
}

}  // namespace

}  // namespace rowlock
