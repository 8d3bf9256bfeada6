export interface FollowStatus {
  state: 'catching up' | 'keeping up'
  ordinals: 'names' | 'all' | 'none'
  /** Admitted since the start. */
  mints: number
  transfers: number
  /** The chain height up to which everything followed was asked about. */
  height?: number
  /** The current sweep: how many of its coins were asked about. */
  sweep: { asked: number; coins: number }
  /** Unproven transactions that wait for a proof. */
  unproven: number
  failures: number
  lastError?: { at: number; message: string }
}
