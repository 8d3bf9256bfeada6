import { MiningError } from './mining-error.js'

/** What mining a name may cost at most, whatever servers and wallets say. */
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

/** In satoshis: 2.5 times what a mint of the live tree, of 18 KB, costs at the usual rate. */
const DEFAULT_MAX_FEE = 5_000
/** Mints beyond the missing characters, for those that lose to other mints. */
const SPARE_MINTS = 3
const DEFAULT_MAX_TIME = 60 * 60 * 1000

/** A complete budget, with defaults that depend on how many characters are missing. */
export function budgetFor(missing: number, set: Partial<MiningBudget> = {}): MiningBudget {
  const { maxFee = DEFAULT_MAX_FEE, maxMints = missing + SPARE_MINTS, maxTime = DEFAULT_MAX_TIME } = set
  return { maxFee, maxMints, maxTime, maxTotal: set.maxTotal ?? maxFee * maxMints }
}

/** Adds up what mining has cost, and stops it before it exceeds its budget. */
export class Spending {
  private mints = 0
  /** Fees so far, in satoshis; for a mint whose fee is unknown, the maximum that it was allowed. */
  private total = 0

  constructor(readonly budget: MiningBudget) {}

  /**
   * Allows one more mint.
   *
   * @returns The highest fee that it may have, in satoshis.
   * @throws MiningError `OVER_BUDGET` if no more may be paid for.
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
        `${this.total} satoshis of fees were paid, and maxTotal allows ${maxTotal}`,
      )
    const allowed = Math.min(maxFee, maxTotal - this.total)
    this.mints++
    this.total += allowed
    return allowed
  }

  /** Replaces the fee that a mint was allowed by the one that it had. */
  recordFee({ allowed, fee }: { allowed: number; fee: number }): void {
    this.total += fee - allowed
  }
}
