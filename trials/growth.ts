/** A measure over time, and whether it keeps growing. */
export interface Growth {
  /** The medians of the first, the second and the last third of the samples. */
  medians: number[]
  hasGrown: boolean
}

/**
 * Compares the thirds of the samples after a warm-up: a leak is more in each third than in the one before, and in the last by
 * more than `slack` and a half of the first.
 */
export function growthOf(samples: readonly number[], { slack }: { slack: number }): Growth {
  const size = Math.floor(samples.length / 3)
  const medians = [0, 1, 2].map((third) => medianOf(samples.slice(third * size, (third + 1) * size)))
  const [first = 0, second = 0, last = 0] = medians
  return { medians, hasGrown: first < second && second < last && last > first * 1.5 + slack }
}

export function medianOf(values: readonly number[]): number {
  return [...values].sort((one, other) => one - other)[Math.floor(values.length / 2)] ?? 0
}
