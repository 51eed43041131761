// Every way a file or a call can be wrong, by name. Inside the engine a fault is thrown as `Failure`; nothing escapes
// the public faces (Engine's static functions, the C API), which turn it into a `Status`.
#pragma once
#include <string>
#include <utility>

namespace ebnet {

// X(name, number): numbers are part of the C API and never change meaning.
#define EBNET_ERRORS(X)           \
  X(Ok, 0)                        \
  X(FileUnreadable, 1)            \
  X(FileTooSmall, 2)              \
  X(FileTooLarge, 3)              \
  X(FileTruncated, 4)             \
  X(HeaderTooLarge, 5)            \
  X(HeaderLengthInvalid, 6)       \
  X(FileChanged, 7)               \
  X(FileMissing, 8)               \
  X(NotAPackedNetwork, 9)         \
  X(JsonSyntax, 10)               \
  X(JsonTooDeep, 11)              \
  X(JsonTooManyValues, 12)        \
  X(JsonDuplicateKey, 13)         \
  X(JsonInvalidUtf8, 14)          \
  X(JsonNumberInvalid, 15)        \
  X(FieldMissing, 20)             \
  X(FieldUnknown, 21)             \
  X(FieldTypeWrong, 22)           \
  X(FieldOutOfRange, 23)          \
  X(FieldChoiceUnknown, 24)       \
  X(FormatNameWrong, 30)          \
  X(FormatVersionUnsupported, 31) \
  X(TensorTypeUnknown, 40)        \
  X(TensorOffsetsInvalid, 41)     \
  X(TensorSizeMismatch, 42)       \
  X(TensorsOverlapOrGap, 43)      \
  X(TensorMissing, 44)            \
  X(TensorTypeWrong, 45)          \
  X(TensorShapeWrong, 46)         \
  X(TensorNotFinite, 47)          \
  X(TensorUnused, 48)             \
  X(TensorUsedTwice, 49)          \
  X(TensorPaddingNotZero, 50)     \
  X(TensorOutOfRange, 51)         \
  X(ProgramEmpty, 60)             \
  X(ProgramTooLong, 61)           \
  X(OpUnknown, 62)                \
  X(ValueReferenceInvalid, 63)    \
  X(ValueKindWrong, 64)           \
  X(ValueUnused, 65)              \
  X(ChannelsMismatch, 66)         \
  X(GroupsInvalid, 67)            \
  X(WindowInvalid, 68)            \
  X(ProgramResultWrong, 70)       \
  X(LabelsMismatch, 71)           \
  X(PreprocessingInvalid, 72)     \
  X(TextUnprintable, 73)          \
  X(InputSizeInvalid, 80)         \
  X(SpatialMismatch, 81)          \
  X(PlanTooLarge, 82)             \
  X(BatchEmpty, 83)               \
  X(InputNotFinite, 84)           \
  X(ArgumentInvalid, 85)          \
  X(IsaUnavailable, 86)           \
  X(ThreadsUnavailable, 87)       \
  X(Cancelled, 88)                \
  X(LogitsNotFinite, 89)          \
  X(OutOfMemory, 90)              \
  X(Internal, 91)

enum class Error : int {
#define X(name, number) name = number,
  EBNET_ERRORS(X)
#undef X
};

const char* error_name(Error error);

// Faults of the file itself, as opposed to faults of a call on a good file.
inline bool is_format_error(Error error) {
  return static_cast<int>(error) >= 1 && static_cast<int>(error) < static_cast<int>(Error::InputSizeInvalid);
}

struct Status {
  Error error = Error::Ok;
  std::string message;
  explicit operator bool() const { return error == Error::Ok; }
};

struct Failure {
  Error error;
  std::string message;
};

[[noreturn]] inline void fail(Error error, std::string message) { throw Failure{error, std::move(message)}; }

// Names from a file go into messages cut short and with unprintable bytes replaced.
std::string quoted(const std::string& text);

Status status_of_current_exception() noexcept;

// Runs `work` and turns whatever it throws into a Status.
template <class Work>
Status guarded(Work&& work) noexcept {
  try {
    work();
    return {};
  } catch (...) {
    return status_of_current_exception();
  }
}

}  // namespace ebnet
