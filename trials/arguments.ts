import { parseArgs } from 'node:util'

/** The length of a trial, and the seed of its numbers. */
export interface TrialArguments {
  minutes: number
  seed: number
  /** Runs only this kind. */
  kind?: string
}

/**
 * Reads `--minutes`, `--seed` and `--kind` from a command line; without a seed, a random one is used.
 *
 * @throws TypeError for any other argument, and RangeError for an invalid number.
 */
export function readTrialArguments(defaults: { minutes: number }): TrialArguments {
  const { values } = parseArgs({
    options: { minutes: { type: 'string' }, seed: { type: 'string' }, kind: { type: 'string' } },
  })
  const minutes = Number(values.minutes ?? defaults.minutes)
  const seed = Number(values.seed ?? Date.now() % 2 ** 31)
  if (!(minutes > 0)) throw new RangeError('--minutes must be more than 0')
  if (!Number.isSafeInteger(seed)) throw new RangeError('--seed must be a whole number')
  return { minutes, seed, ...(values.kind !== undefined && { kind: values.kind }) }
}
