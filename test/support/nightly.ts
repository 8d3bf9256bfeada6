/** Whether all rounds, sizes, engines and attacks are run, as by `npm run nightly`; CI runs the fewest that show a promise. */
export const IS_NIGHTLY = process.env.NIGHTLY !== undefined

/** By day, every so manieth of a list, from the first; at night, all. */
export function sampleOf<Item>(all: readonly Item[], every: number): Item[] {
  return all.filter((_, at) => IS_NIGHTLY || at % every === 0)
}

/** How often something random is done: as often as `RUNS` says, or else so often by day, and so often at night. */
export function rounds(byDay: number, atNight: number): number {
  return Number(process.env.RUNS ?? (IS_NIGHTLY ? atNight : byDay))
}
