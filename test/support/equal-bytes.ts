// Once a worker, whose suites share this module. Vitest by itself compares bytes one by one, as the properties of objects: for a few
// megabytes, that takes seconds.

expect.addEqualityTesters([
  (one, other) =>
    one instanceof Uint8Array && other instanceof Uint8Array && one.constructor === other.constructor
      ? Buffer.compare(one, other) === 0
      : undefined,
])
