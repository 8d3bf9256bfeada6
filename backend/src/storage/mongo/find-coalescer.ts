import { RequestCoalescer } from '../read/request-coalescer.js'
import { unique } from '../rows/columns.js'
import type { CollectionName } from './collections.js'
import type { Doc, Documents, Filter, FindOptions, Value } from './documents.js'

/** How many finds go as one: few enough for answers that are pieces of bodies, and for filters that servers take apart. */
const AT_ONCE = 16

/** Who asks for more than so many at once has them found by a call of their own. */
const MANY = AT_ONCE / 2

/**
 * Fields that lead to a few documents at the most, where each is asked to be equal to something, or below it; beside
 * `_id`.
 */
const FEW: Partial<Record<CollectionName, string[][]>> = {
  graph_outputs: [['lineage_txid', 'lineage_vout', 'step']],
  graph_names: [['name'], ['txid', 'vout']],
  graph_spends: [['txid', 'vout']],
  graph_blocked: [['txid', 'vout']],
}

/** What each of the fields is to be equal to, in their order. */
type Wanted = Value[]

/**
 * Finds of the same kind that are asked for at the same time, as one of them: of documents by their keys, and by what
 * few have.
 */
export class FindCoalescer {
  private readonly kinds = new Map<string, RequestCoalescer<Wanted, Doc[]>>()

  constructor(private readonly find: Documents['all']) {}

  /** What a find gives; undefined where it is none of those that are joined. */
  all(name: CollectionName, filter: Filter, options: FindOptions = {}): Promise<Doc[]> | undefined {
    const { sort, limit, fields } = options
    if (sort !== undefined || fields === undefined) return undefined
    const branches = '$or' in filter ? (filter.$or ?? []) : [filter]
    const [first] = branches
    if (first === undefined || branches.length > MANY) return undefined
    const asked = Object.keys(first)
    const isAlike = branches.every((branch) => Object.keys(branch).join() === asked.join())
    const isKnown = isAlike && [['_id'], ...(FEW[name] ?? [])].some((few) => few.join() === asked.join())
    if (!isKnown) return undefined
    const below = branches.length > 1 ? [] : Object.entries(first).filter(([, wanted]) => isBelow(wanted))
    const sought = asked.filter((field) => !below.some(([other]) => other === field))
    const wanted = branches.map((branch) => sought.map((field) => branch[field]))
    if (!wanted.every((values): values is Wanted => values.every(isValue))) return undefined
    const kind = this.kind(name, { sought, below: Object.fromEntries(below), fields })
    const found = Promise.all(unique(wanted, keyOf).map((values) => kind.ask(values)))
    return found.then((docs) => docs.flat().slice(0, limit))
  }

  private kind(name: CollectionName, { sought, below, fields }: Kind): RequestCoalescer<Wanted, Doc[]> {
    const key = JSON.stringify([name, sought, below, fields])
    let kind = this.kinds.get(key)
    if (kind === undefined) {
      const all = [...new Set([...sought, ...fields])]
      kind = new RequestCoalescer({
        atOnce: AT_ONCE,
        ask: async (questions) => {
          const found = new Map(questions.map((wanted): [string, Doc[]] => [keyOf(wanted), []]))
          const docs = await this.find(name, filterOf({ sought, below }, questions), { fields: all })
          for (const doc of docs) found.get(keyOf(sought.map((field) => doc[field])))?.push(doc)
          return questions.map((wanted) => found.get(keyOf(wanted)) ?? [])
        },
      })
      this.kinds.set(key, kind)
    }
    return kind
  }
}

/** What finds have to have in common. */
interface Kind {
  /** The fields that are asked to be equal to something, which may be another thing in each. */
  sought: string[]
  /** What is asked of others, the same in all. */
  below: Filter
  fields: string[]
}

function filterOf({ sought, below }: Omit<Kind, 'fields'>, questions: Wanted[]): Filter {
  const each = unique(questions, keyOf)
  const [field = '_id', ...others] = sought
  if (others.length === 0 && each.length > 1) return { [field]: { $in: each.flat() }, ...below }
  const filters = each.map((wanted) => ({
    ...Object.fromEntries(sought.map((name, at) => [name, wanted[at]])),
    ...below,
  }))
  const [only, more] = filters
  return only !== undefined && more === undefined ? only : { $or: filters }
}

function isBelow(wanted: Filter[string]): boolean {
  return typeof wanted === 'object' && wanted !== null && Object.keys(wanted).join() === '$lt'
}

function isValue(wanted: Filter[string]): wanted is Value {
  return Buffer.isBuffer(wanted) || typeof wanted === 'string' || typeof wanted === 'number'
}

/** Numbers and binary values of the fields that are sought stand in no text, so that nothing is taken for another. */
function keyOf(wanted: Wanted): string {
  return wanted.map((value) => (Buffer.isBuffer(value) ? value.toString('hex') : String(value))).join(' ')
}
