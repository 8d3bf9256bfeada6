import type { Sql } from '../facts/connection.js'
import { TALLY_STEPS } from '../index/schema.js'
import { NAME_CHARACTERS } from '../protocol/mine-node.js'
import type { Guard } from './guard.js'
import type { Reader } from './reader.js'

/** A prefix in the tree of names, with its branches as far as they were requested. */
export interface Branch {
  domain: string
  /** How many names begin with it, itself included. */
  names: number
  branches: Branch[]
}

export interface BranchQuery {
  domain: string
  /** How many levels below it are read. */
  levels: number
  /** Branches with less than this share of all names below the domain are read without their own branches. */
  share: number
}

/** The names proven in one step of blocks. */
export interface NamesAt {
  /** The lowest height. */
  from: number
  names: number
}

export interface NamesByHeight {
  /** Blocks per count. */
  step: number
  /** By height; steps without names are left out. */
  counts: NamesAt[]
}

/** The kinds that inscriptions are counted as. */
export type TalliedKind = 'directory' | 'image' | 'audio' | 'video' | 'page' | 'json' | 'text' | 'other'

/** Inscriptions of one kind whose lengths have the same number of digits. */
export interface ContentTally {
  kind: TalliedKind
  /** How many digits the length in bytes has. */
  digits: number
  count: number
  bytes: number
}

/** About the most counts in {@link NamesByHeight}. */
const MOST_STEPS = 100

const LARGEST = Math.max(...TALLY_STEPS)
/** Counts for charts, kept by the index. Blocked things are counted, too. Each call reads a bounded number of rows. */
export class Charts {
  constructor(
    private readonly reader: Reader,
    private readonly guard: Guard,
  ) {}

  /** The tree below a domain. At most 1 / share branches of a level are followed, each with up to 37 branches. */
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

  /** Names by height, in the smallest steps that give few counts. Unproven names are left out. */
  namesByHeight(): NamesByHeight {
    return this.reader.answer((sql) => {
      const [lowest] = sql.all(`${AT_HEIGHTS} limit 1`, TALLY_STEPS[0])
      const [highest] = sql.all(`${AT_HEIGHTS} desc limit 1`, TALLY_STEPS[0])
      if (lowest === undefined || highest === undefined) return { step: TALLY_STEPS[0], counts: [] }
      const blocks = (highest.key - lowest.key) * TALLY_STEPS[0]
      const tallied = TALLY_STEPS.find((each) => blocks / each <= MOST_STEPS) ?? LARGEST
      // Heights that nobody checks may be any.
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
  // Bound numbers are reals.
  'select key / cast(? as integer) as at, sum(n) as n from tally where what = ? and n > 0 group by at order by at'
const CONTENT = `select key, n, bytes from tally where what = 'content' and n > 0`

/** How many names begin with each of these domains; those without any are left out. */
function namesBelow(sql: Sql, domains: string[]): Map<string, number> {
  // Every name begins with one of the characters.
  if (domains[0] === '') {
    const first = namesBelow(sql, Array.from(NAME_CHARACTERS))
    return new Map([['', [...first.values()].reduce((sum, each) => sum + each, 0)]])
  }
  return new Map(sql.all(NAMES_BELOW, JSON.stringify(domains)).map(({ key, n }) => [String(key), Number(n)]))
}
