#include "race/written_columns.hpp"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <set>
#include <vector>

#include "race/sql_tokens.hpp"

namespace rowlock::race {

namespace {

/// Reads INSERT's list of columns and what stands behind SET; where it can't tell, it takes the column for written.
class WrittenColumns {
  public:
    explicit WrittenColumns(const TableShapes& shapes) {
        for (const auto& [name, shape] : shapes) {
            const std::string table = bare(name.substr(name.rfind('.') + 1));
            for (const std::string& column : shape.defaulted) {
                columns_[table].insert(column);
                any_.insert(column);
            }
        }
    }

    std::string find(std::string_view statement) {
        words_ = sql_code_words(statement);
        for (std::size_t i = 0; i < words_.size(); ++i) {
            std::string column;
            if (words_[i] == "into" && i > 0 && words_[i - 1] == "insert") column = in_insert(i + 1);
            if (words_[i] == "set") column = between(i + 1, any_, {"where", "from", "returning", ";"});
            // MERGE has its own INSERT, without a table's name.
            if (words_[i] == "insert" && word(i + 1) == "(") column = between(i + 2, any_, {")"});
            if (!column.empty()) return column;
        }
        return {};
    }

  private:
    static std::string bare(std::string_view word) {
        std::string text = lower_case(word);
        std::erase(text, '"');
        return text;
    }

    [[nodiscard]] std::string word(std::size_t at) const { return at < words_.size() ? words_[at] : std::string(); }

    [[nodiscard]] std::string in_insert(std::size_t at) const {
        std::string table = bare(word(at));
        while (word(at + 1) == ".") table = bare(word(at += 2));
        if (word(at + 1) == "as") at += 2;
        const auto columns = columns_.find(table);
        if (columns == columns_.end() || columns->second.empty() || word(at + 1) == "default") return {};
        if (word(at + 1) != "(") return *columns->second.begin();
        return between(at + 2, columns->second, {")"});
    }

    [[nodiscard]] std::string between(std::size_t at, const std::set<std::string>& columns,
                                      std::initializer_list<std::string_view> ends) const {
        for (; at < words_.size() && std::ranges::find(ends, words_[at]) == ends.end(); ++at) {
            if (const auto column = columns.find(bare(words_[at])); column != columns.end()) return *column;
        }
        return {};
    }

    std::vector<std::string> words_;
    std::map<std::string, std::set<std::string>> columns_;  ///< By table.
    std::set<std::string> any_;
};

}  // namespace

std::string column_written_by(std::string_view sql, const TableShapes& shapes) {
    WrittenColumns written(shapes);
    for (const std::string_view statement : sql_statements(sql)) {
        std::string column = written.find(statement);
        if (!column.empty()) return column;
    }
    return {};
}

}  // namespace rowlock::race
