import { MiningError } from './mining-error.js'

/** Limits on what mining a name may cost, whatever servers and wallets say. */
export interface MiningBudget {
  /** The fee of one mint, in satoshis. */
  maxFee: number
  /** The fees of all mints together, in satoshis. */
  maxTotal: number
  /** The mints that are paid for, including those that lose to other mints. */
  maxMints: number
  /** How long it may take, in milliseconds. */
  maxTime: number
}

/** In satoshis: 2.5 times the usual fee for a mint of the live tree, which has 18 KB. */
const DEFAULT_MAX_FEE = 5_000
/** Additional mints, for those that lose to other mints. */
const SPARE_MINTS = 3
const DEFAULT_MAX_TIME = 60 * 60 * 1000

/** A complete budget; its defaults depend on how many characters are missing. */
export function budgetFor(missing: number, set: Partial<MiningBudget> = {}): MiningBudget {
  const { maxFee = DEFAULT_MAX_FEE, maxMints = missing + SPARE_MINTS, maxTime = DEFAULT_MAX_TIME } = set
  return { maxFee, maxMints, maxTime, maxTotal: set.maxTotal ?? maxFee * maxMints }
}

/** Adds up what mining has cost, and stops it before it exceeds its budget. */
export class Spending {
  private mints = 0
  /** Fees so far, in satoshis; a mint whose fee is unknown counts with its maximum. */
  private total = 0

  constructor(readonly budget: MiningBudget) {}

  /**
   * Allows one more mint.
   *
   * @returns The highest fee that it may have, in satoshis.
   * @throws MiningError `OVER_BUDGET` if the budget allows no more.
   */
  allowMint(): number {
    const { maxFee, maxTotal, maxMints } = this.budget
    if (this.mints >= maxMints)
      throw new MiningError(
        'OVER_BUDGET',
        `${this.mints} mints were paid for, which is all that maxMints allows`,
      )
    if (this.total >= maxTotal)
      throw new MiningError(
        'OVER_BUDGET',
        `${this.total} satoshis of fees were paid, but maxTotal allows ${maxTotal}`,
      )
    const allowed = Math.min(maxFee, maxTotal - this.total)
    this.mints++
    this.total += allowed
    return allowed
  }

  /** Replaces the maximum fee of a mint by its actual fee. */
  recordFee({ allowed, fee }: { allowed: number; fee: number }): void {
    this.total += fee - allowed
  }
}
