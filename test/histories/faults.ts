/** A slip in the index, as somebody may make it. */
export interface Fault {
  says: string
  file: string
  /** What stands in the file, once, and what the slip makes of it. */
  from: string
  to: string
  /** The first of the tests that finds it (`long/faults.test.ts`). */
  foundBy: 'any-order' | 'index' | 'histories'
}

/** Faults that the histories have to find, each put into the index alone (`long/faults.test.ts`). */
export const FAULTS: Fault[] = [
  {
    says: 'a sighting does not pass to ancestors',
    file: 'active.ts',
    from: 'seen: seen | child.seen,',
    to: 'seen,',
    foundBy: 'any-order',
  },
  {
    says: 'of two descendants in blocks the higher one counts',
    file: 'active.ts',
    from: 'Math.min(mined, child.mined)',
    to: 'Math.max(mined, child.mined)',
    foundBy: 'any-order',
  },
  {
    says: 'a parent that came after its child keeps its own place',
    file: 'active.ts',
    from: 'ord: Math.min(ord, child.ord - 1),',
    to: 'ord,',
    foundBy: 'index',
  },
  {
    says: 'a proof that is no more still counts for the ancestors',
    file: 'active.ts',
    from: 'else push(parent)',
    to: '',
    foundBy: 'any-order',
  },
  {
    says: 'lists keep a transaction where it was when its proof comes',
    file: 'active.ts',
    from: 'if (own !== row.own || (own === null && ord !== row.ord)) this.sortAgain(id, rank)',
    to: 'if (own === null && ord !== row.ord) this.sortAgain(id, rank)',
    foundBy: 'any-order',
  },
  {
    says: 'children of what became inactive are forgotten',
    file: 'active.ts',
    from: 'add(statusOf(child.id), next)',
    to: 'void child',
    foundBy: 'any-order',
  },
  {
    says: 'what the network rejected counts all the same',
    file: 'active.ts',
    from: 'if (isRejected(status)) return status',
    to: '',
    foundBy: 'index',
  },
  {
    says: 'non-mints conflict over a node',
    file: 'active.ts',
    from: 'sql.all(COINS, id).filter(({ node, mint }) => node === 0 || mint === 1) as Coin[]',
    to: 'sql.all(COINS, id) as Coin[]',
    foundBy: 'any-order',
  },
  {
    says: 'what spends the node of a mint is not decided again when the mint turns out to be one',
    file: 'judge.ts',
    from: 'if (judged.hasChildren) for (const { id } of transactions.children(row.id)) agenda.toDecide.add(id)',
    to: '',
    foundBy: 'index',
  },
  {
    says: 'an output is an ordinal because it receives a carrier',
    file: 'judge.ts',
    from: "const receives = predecessor?.kind === 'input' && coins[predecessor.input]?.carrier === 0",
    to: "const receives = predecessor?.kind === 'input' && coins[predecessor.input] !== undefined",
    foundBy: 'any-order',
  },
  {
    says: 'what is admitted late does not reach what spends it',
    file: 'judge.ts',
    from: 'for (const child of judged.hasChildren ? transactions.children(row.id) : []) {',
    to: 'for (const child of [] as TransactionRow[]) {',
    foundBy: 'any-order',
  },
  {
    says: 'the refusals of the policy are ignored',
    file: 'judge.ts',
    from: 'const isAdmitted = (holds || receives) && !refused.has(vout)',
    to: 'const isAdmitted = holds || receives',
    foundBy: 'index',
  },
  {
    says: 'the lineage of a name goes on behind its mint',
    file: 'judge.ts',
    from: "const from = predecessor?.kind === 'input' && !isName ? inputs[predecessor.input] : undefined",
    to: "const from = predecessor?.kind === 'input' ? inputs[predecessor.input] : undefined",
    foundBy: 'histories',
  },
  {
    says: 'the MAP of a blocked output is merged',
    file: 'lineages.ts',
    from: 'const hasMap = row.mlen !== null && origin !== null && !this.tables.registers.hasOutput(row)',
    to: 'const hasMap = row.mlen !== null && origin !== null',
    foundBy: 'index',
  },
  {
    says: 'later content does not replace the first',
    file: 'lineages.ts',
    from: 'latest: row.content ? row.oid : before.latest,',
    to: 'latest: before.latest ?? (row.content ? row.oid : null),',
    foundBy: 'histories',
  },
  {
    says: 'a parent counts by a carrier',
    file: 'lineages.ts',
    from: 'if (row === undefined || row.carrier === 1) return false',
    to: 'if (row === undefined) return false',
    foundBy: 'index',
  },
  {
    says: 'of two verdicts on a block the one that is applied last counts',
    file: 'registers.ts',
    from: 'on conflict (subject) do update set n = excluded.n, value = excluded.value where excluded.n > n`',
    to: 'on conflict (subject) do update set n = excluded.n, value = excluded.value`',
    foundBy: 'any-order',
  },
  {
    says: 'a spent ordinal keeps its owner',
    file: 'attributes.ts',
    from: 'if (owner === null || this.tables.transactions.hasActiveSpender(tid, vout)) return []',
    to: 'if (owner === null) return []',
    foundBy: 'index',
  },
  {
    says: 'an ordinal is looked for on a branch that does not count',
    file: 'attributes.ts',
    from: '(select max(step) from out where lin = ?1 and active = 1)',
    to: '(select max(step) from out where lin = ?1)',
    foundBy: 'histories',
  },
  {
    says: 'MAP is merged from the last output back',
    file: 'map-snapshots.ts',
    from: 'maps.reverse().flatMap(decodeMap)',
    to: 'maps.flatMap(decodeMap)',
    foundBy: 'index',
  },
  {
    says: 'what is seen does not rank before what is unseen',
    file: '../graph/conflict-resolution.ts',
    from: 'Number(other.seen) - Number(one.seen) ||',
    to: '',
    foundBy: 'index',
  },
  {
    says: 'the lower block does not decide',
    file: '../graph/conflict-resolution.ts',
    from: 'if (mined !== otherMined) return mined - otherMined',
    to: '',
    foundBy: 'index',
  },
  {
    says: 'what waits is not tried again when what it lost to loses its block',
    file: 'active.ts',
    from: 'if (!isBetter(rank, row)) journal.lowered.push(txid)',
    to: '',
    foundBy: 'index',
  },
  {
    says: 'what brings a proof comes before what waited for it',
    file: '../writer/door.ts',
    from: 'mayFree && isUnproven ? this.enterProven(entering) : undefined',
    to: 'undefined as Candidate[] | undefined',
    foundBy: 'index',
  },
]
