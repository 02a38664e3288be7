// Feeds what reads signed notes and their texts. What is not as it must be is refused; what is read is written back as
// the same bytes, since there is one form; and nothing is believed that the pinned key has not signed.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "audit/bundle_format.hpp"
#include "audit/checkpoint_format.hpp"
#include "audit/note.hpp"
#include "rowlock/error.hpp"

namespace {

using namespace rowlock;

void require(bool condition) {
    if (!condition) std::abort();
}

/// Behind a good signature, which chance does not find.
void read_text(std::string_view text) {
    const auto checkpoint = parse_checkpoint(text);
    if (const auto* const read = std::get_if<Checkpoint>(&checkpoint)) require(checkpoint_text(*read) == text);
    const auto bundle = parse_bundle_text(text);
    if (const auto* const read = std::get_if<BundleText>(&bundle)) {
        require(bundle_text(read->ledger, read->made_at, read->heads) == text);
    }
}

void read_key(std::string_view text) {
    try {
        require(!PublicKey::parse(text).text().empty());
    } catch (const InvalidInput&) {  // NOLINT(bugprone-empty-catch): refused, as it should be
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const std::vector<PublicKey> strangers{SigningKey::generate("shop.example/audit").public_key()};
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): bytes are what a file is
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    require(std::holds_alternative<NoteRefused>(open_note(text, strangers)));
    read_text(text);
    read_text(text.substr(0, text.rfind("\n\n") + 1));
    read_key(text);
    return 0;
}
