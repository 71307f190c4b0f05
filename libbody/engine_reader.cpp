// What SGLang's /generate and vLLM's /inference/v1/generate take.
#include <errno.h>

#include <algorithm>

#include "libbody/prompt_reader.hpp"

namespace pickd::body {

int PromptReader::sglang(const Fields& fields) {
  if (const Json* ids = fields.get(Field::kInputIds); ids != nullptr) return prompts(ids, fields);
  const Json* text = fields.get(Field::kText);
  if (text == nullptr) return -EINVAL;
  const Json* const media[] = {fields.get(Field::kImageData), fields.get(Field::kVideoData),
                               fields.get(Field::kAudioData)};
  if (media[0] == nullptr && media[1] == nullptr && media[2] == nullptr)
    return prompts(text, fields);
  // Where in the text they go only the engine knows, so texts with other media share nothing.
  if (!is_array(*text)) return sglang_prompt(*text, media);
  for (const Json one : array_of(*text)) {
    if (stream_.prompt_count() == kPromptsMax) break;
    if (const int code = sglang_prompt(one, media); code != 0) return code;
  }
  return 0;
}

int PromptReader::sglang_prompt(const Json& text, const Json* const (&media)[3]) {
  constexpr Mark kMarks[] = {Mark::kImage, Mark::kVideo, Mark::kAudio};
  if (!is_string(text)) return -EINVAL;
  if (!stream_.begin_prompt()) return -ENOMEM;
  for (std::size_t kind = 0; kind < std::size(media); ++kind) {
    if (media[kind] != nullptr) writer_.medium(kMarks[kind], *media[kind]);
  }
  stream_.text(string_of(text));
  stream_.end_prompt();
  return 0;
}

int PromptReader::vllm(const Fields& fields) {
  const Json* ids = fields.get(Field::kTokenIds);
  if (ids == nullptr) ids = fields.get(Field::kPrompt);
  if (ids == nullptr || !is_array(*ids)) return -EINVAL;
  if (const int code = token_prompt(array_of(*ids)); code != 0) return code;
  const Json* media = fields.get(Field::kFeatures);
  return media == nullptr ? 0 : features(*media, stream_.prompt(0).token_count);
}

// {"mm_hashes": {"image": [hash, ..]}, "mm_placeholders": {"image": [{"offset": 5, "length": 9},
// ..]}}
//
// All placeholders are the same token, so without the hashes every image would be the same image.
// What has another form stands at the start of the prompt: it is never taken for something else.
int PromptReader::features(const Json& features, std::size_t token_count) {
  Json hashes, places;
  bool placed = find(features, "mm_hashes", hashes) && is_object(hashes) &&
                find(features, "mm_placeholders", places) && is_object(places);
  if (placed) {
    for (const auto kind : object_of(hashes)) {
      Json of_kind;
      const int code =
          find(places, kind.key, of_kind) ? features_of(kind.value, of_kind, token_count) : -EINVAL;
      if (code == -ENOMEM) return code;
      placed = placed && code == 0;
    }
  }
  if (!placed) {
    extras_.clear();
    if (!extras_.digests.push({}) || !extras_.extras.push({0, {nullptr, kDigestBytes}}))
      return -ENOMEM;
    Canonical canonical;
    if (!canonical.digest(features, Mark::kFile, {}, extras_.digests[0].data())) return -ENOMEM;
  }
  for (std::size_t i = 0; i < extras_.extras.size(); ++i) {
    extras_.extras[i].digest.data = extras_.digests[i].data();
  }
  std::sort(
      extras_.extras.begin(), extras_.extras.end(), [](const pickd_extra& a, const pickd_extra& b) {
        return a.offset != b.offset ? a.offset < b.offset
                                    : std::memcmp(a.digest.data, b.digest.data, kDigestBytes) < 0;
      });
  return 0;
}

int PromptReader::features_of(const Json& hashes, const Json& places, std::size_t token_count) {
  if (!is_array(hashes) || !is_array(places)) return -EINVAL;
  const JsonArray of_hashes = array_of(hashes);
  const JsonArray of_places = array_of(places);
  auto place = of_places.begin();
  for (const Json hash : of_hashes) {
    if (place == of_places.end() || !is_string(hash)) return -EINVAL;
    const std::uint32_t offset = count_in(*place, "offset");
    if (offset > token_count || extras_.extras.size() == abi::kPromptExtrasMax) return -EINVAL;
    ++place;
    if (!extras_.digests.push({}) || !extras_.extras.push({offset, {nullptr, kDigestBytes}}))
      return -ENOMEM;
    Canonical::digest(string_of(hash), Mark::kImage, extras_.digests.back().data());
  }
  return place == of_places.end() ? 0 : -EINVAL;
}

}  // namespace pickd::body
