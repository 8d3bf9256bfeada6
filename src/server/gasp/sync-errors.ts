/** A peer that does not answer, or not for now: whatever it is asked next, it would not either. */
export class PeerAwayError extends Error {
  override readonly name = 'PeerAwayError'
}

/** What a peer says of a graph cannot be so. Of its other graphs that says nothing. */
export class BadGraphError extends Error {
  override readonly name = 'BadGraphError'
}

/** A graph that this host does not take, though it may be sound: it is over a limit, or of no topic here. */
export class UnwantedGraphError extends Error {
  override readonly name = 'UnwantedGraphError'
}
