import type { Sql } from '../facts/connection.js'
import { TALLY_STEPS } from '../index/schema.js'
import { NAME_CHARACTERS } from '../protocol/mine-node.js'
import type { Guard } from './guard.js'
import type { Reader } from './reader.js'

/** A prefix in the tree of names, with what grows from it as far as it was asked for. */
export interface Branch {
  domain: string
  /** How many names begin with it, it among them. */
  names: number
  branches: Branch[]
}

export interface BranchQuery {
  domain: string
  /** How many levels below it are read. */
  levels: number
  /** Branches with less than this share of all names below the domain are read without what grows from them. */
  share: number
}

/** Names that were proven in blocks of some heights. */
export interface NamesAt {
  /** The lowest height. */
  from: number
  names: number
}

export interface NamesByHeight {
  /** How many blocks each count is about. */
  step: number
  /** By height; steps without names are left out. */
  counts: NamesAt[]
}

/** What inscriptions are counted as. */
export type TalliedKind = 'directory' | 'image' | 'audio' | 'video' | 'page' | 'json' | 'text' | 'other'

/** Inscriptions of one kind whose lengths have the same number of digits. */
export interface ContentTally {
  kind: TalliedKind
  /** Of the length in bytes. */
  digits: number
  count: number
  bytes: number
}

/** About the most counts in {@link NamesByHeight}. */
const MOST_STEPS = 100

const LARGEST = Math.max(...TALLY_STEPS)
/**
 * What charts show: counts that the index keeps. Blocked things are counted, too. Each call reads a bounded number of rows, whatever the
 * store holds.
 */
export class Charts {
  constructor(
    private readonly reader: Reader,
    private readonly guard: Guard,
  ) {}

  /** The tree below a domain. At most 1 / share branches of a level are followed, which 37 others can grow from. */
  branches({ domain, levels, share }: BranchQuery): Branch {
    const { list } = this.guard
    return this.reader.answer((sql) => {
      const root: Branch = { domain, names: namesBelow(sql, [domain]).get(domain) ?? 0, branches: [] }
      let followed = [root]
      for (let level = 0; level < levels; level++) {
        const below = followed.map((branch) => Array.from(NAME_CHARACTERS, (each) => branch.domain + each))
        const found = namesBelow(sql, below.flat())
        for (const [at, branch] of followed.entries())
          for (const each of below[at] ?? []) {
            const names = found.get(each)
            if (names !== undefined && !list.has('name', each))
              branch.branches.push({ domain: each, names, branches: [] })
          }
        followed = followed.flatMap(({ branches }) =>
          branches.filter(({ names }) => names > 1 && names >= root.names * share),
        )
      }
      return root
    })
  }

  /** Names by height, in the smallest steps of which there are few. Names without a proof are left out. */
  namesByHeight(): NamesByHeight {
    return this.reader.answer((sql) => {
      const [lowest] = sql.all(`${AT_HEIGHTS} limit 1`, TALLY_STEPS[0])
      const [highest] = sql.all(`${AT_HEIGHTS} desc limit 1`, TALLY_STEPS[0])
      if (lowest === undefined || highest === undefined) return { step: TALLY_STEPS[0], counts: [] }
      const blocks = (highest.key - lowest.key) * TALLY_STEPS[0]
      const tallied = TALLY_STEPS.find((each) => blocks / each <= MOST_STEPS) ?? LARGEST
      // Where nobody checks heights, they may be any.
      const together = Math.max(1, Math.ceil(blocks / tallied / MOST_STEPS))
      const step = tallied * together
      const rows = sql.all(IN_STEPS, together, tallied)
      return { step, counts: rows.map(({ at, n }) => ({ from: at * step, names: n })) }
    })
  }

  /** Inscriptions by kind and length: some fifty rows at most. */
  content(): ContentTally[] {
    return this.reader
      .answer((sql) => sql.all(CONTENT))
      .map(({ key, n, bytes }) => {
        const [kind, digits] = String(key).split(' ')
        return { kind: kind as TalliedKind, digits: Number(digits), count: n, bytes }
      })
  }
}

const NAMES_BELOW = `select key, n from tally where what = 'tree' and key in (select value from json_each(?)) and n > 0`
const AT_HEIGHTS = 'select key, n from tally where what = ? and n > 0 order by key'
const IN_STEPS =
  // A bound number is a real one.
  'select key / cast(? as integer) as at, sum(n) as n from tally where what = ? and n > 0 group by at order by at'
const CONTENT = `select key, n, bytes from tally where what = 'content' and n > 0`

/** How many names begin with each of some domains, without those that none begins with. */
function namesBelow(sql: Sql, domains: string[]): Map<string, number> {
  // Every name begins with one of the characters.
  if (domains[0] === '') {
    const first = namesBelow(sql, Array.from(NAME_CHARACTERS))
    return new Map([['', [...first.values()].reduce((sum, each) => sum + each, 0)]])
  }
  return new Map(sql.all(NAMES_BELOW, JSON.stringify(domains)).map(({ key, n }) => [String(key), Number(n)]))
}
