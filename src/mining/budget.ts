import { MiningError } from './mining-error.js'

/** What mining a name may cost at the most, whatever servers and wallets say. */
export interface MiningBudget {
  /** Fee of one mint, in satoshis. */
  maxFee: number
  /** Fees of all mints together, in satoshis. */
  maxTotal: number
  /** Mints that are paid for, those that are lost to rivals included. */
  maxMints: number
  /** How long it may take, in milliseconds. */
  maxTime: number
}

/** In satoshis: 2.5 times what a mint of the live tree, of 18 KB, costs at the usual rate. */
const DEFAULT_MAX_FEE = 5_000
/** Mints beyond the missing characters, for those that are lost to rivals. */
const SPARE_MINTS = 3
const DEFAULT_MAX_TIME = 60 * 60 * 1000

/** A whole budget: what is not set follows from how many characters are missing. */
export function budgetFor(missing: number, set: Partial<MiningBudget> = {}): MiningBudget {
  const { maxFee = DEFAULT_MAX_FEE, maxMints = missing + SPARE_MINTS, maxTime = DEFAULT_MAX_TIME } = set
  return { maxFee, maxMints, maxTime, maxTotal: set.maxTotal ?? maxFee * maxMints }
}

/** Counts what mining has cost, and stops it before it costs more than it may. */
export class Spending {
  private mints = 0
  /** Fees so far, in satoshis; of a mint whose fee was never told, the most that it may have had. */
  private total = 0

  constructor(readonly budget: MiningBudget) {}

  /**
   * Allows one more mint.
   *
   * @returns The fee that it may have, in satoshis.
   * @throws MiningError `OVER_BUDGET` where no more may be paid for.
   */
  allowMint(): number {
    const { maxFee, maxTotal, maxMints } = this.budget
    if (this.mints >= maxMints)
      throw new MiningError('OVER_BUDGET', `${this.mints} mints were paid for, and no more may be (maxMints)`)
    if (this.total >= maxTotal)
      throw new MiningError(
        'OVER_BUDGET',
        `${this.total} satoshis of fees were paid, and no more than ${maxTotal} may be (maxTotal)`,
      )
    const allowed = Math.min(maxFee, maxTotal - this.total)
    this.mints++
    this.total += allowed
    return allowed
  }

  /** Counts a mint with the fee that it had instead of what it was allowed. */
  settle({ allowed, fee }: { allowed: number; fee: number }): void {
    this.total += fee - allowed
  }
}

/**
 * Holds the fee of a mint against what it may be, before it is signed.
 *
 * @throws MiningError `OVER_BUDGET`.
 */
export function requireFee({ name, fee, maxFee }: { name: string; fee: number; maxFee: number }): void {
  if (fee <= maxFee) return
  throw new MiningError(
    'OVER_BUDGET',
    `the mint of ${name} takes a fee of ${fee} satoshis, and no more than ${maxFee} are allowed`,
  )
}
