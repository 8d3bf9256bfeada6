import { monotonic } from '../../backend/src/protocol/monotonic.js'

/** How long a server or store that failed is left out, or asked after the others, in milliseconds. */
const REST = 60_000

/** Servers or stores that failed lately. */
export class Resting<Asked extends object> {
  /** Until when each of them rests. */
  private readonly until = new WeakMap<Asked, number>()

  has(asked: Asked, now = monotonic()): boolean {
    return (this.until.get(asked) ?? 0) > now
  }

  add(asked: Asked): void {
    this.until.set(asked, monotonic() + REST)
  }

  delete(asked: Asked): void {
    this.until.delete(asked)
  }
}

/** In their order, but resting ones after the others. */
export function inTurn<Asked extends object>(
  all: readonly Asked[],
  resting: Resting<Asked>,
): { each: Asked; isResting: boolean }[] {
  const now = monotonic()
  const turns = all.map((each) => ({ each, isResting: resting.has(each, now) }))
  return [...turns.filter(({ isResting }) => !isResting), ...turns.filter(({ isResting }) => isResting)]
}
