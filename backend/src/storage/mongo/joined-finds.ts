import { unique } from '../columns.js'
import { Together } from '../together.js'
import type { CollectionName } from './collections.js'
import type { Doc, Documents, Filter, FindOptions, Value } from './documents.js'

/** How many finds go as one: few enough for answers that are pieces of bodies, and for filters that servers take apart. */
const AT_ONCE = 16

/** Who asks for more than so many at once has them found by a call of their own. */
const MANY = AT_ONCE / 2

/** Fields that lead to a few documents at the most, where all of them are asked to be equal to something; beside `_id`. */
const FEW: Partial<Record<CollectionName, string[][]>> = {
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
export class JoinedFinds {
  private readonly kinds = new Map<string, Together<Wanted, Doc[]>>()

  constructor(private readonly find: Documents['all']) {}

  /** What a find gives; undefined where it is none of those that are joined. */
  all(name: CollectionName, filter: Filter, options: FindOptions = {}): Promise<Doc[]> | undefined {
    const { sort, limit, fields } = options
    if (sort !== undefined || fields === undefined) return undefined
    const branches = '$or' in filter ? (filter.$or ?? []) : [filter]
    const [first] = branches
    if (first === undefined || branches.length > MANY) return undefined
    const sought = Object.keys(first)
    const isAlike = branches.every((branch) => Object.keys(branch).join() === sought.join())
    const known = isAlike && [['_id'], ...(FEW[name] ?? [])].some((few) => few.join() === sought.join())
    const wanted = branches.map((branch) => sought.map((field) => branch[field]))
    if (!known || !wanted.every((values): values is Wanted => values.every(isValue))) return undefined
    const kind = this.kind(name, { sought, fields })
    const found = Promise.all(unique(wanted, keyOf).map((values) => kind.ask(values)))
    return found.then((docs) => docs.flat().slice(0, limit))
  }

  private kind(
    name: CollectionName,
    { sought, fields }: { sought: string[]; fields: string[] },
  ): Together<Wanted, Doc[]> {
    const key = [name, sought, fields].join(' ')
    let kind = this.kinds.get(key)
    if (kind === undefined) {
      const all = [...new Set([...sought, ...fields])]
      kind = new Together({
        atOnce: AT_ONCE,
        ask: async (questions) => {
          const found = new Map(questions.map((wanted): [string, Doc[]] => [keyOf(wanted), []]))
          const docs = await this.find(name, filterOf(sought, questions), { fields: all })
          for (const doc of docs) found.get(keyOf(sought.map((field) => doc[field])))?.push(doc)
          return questions.map((wanted) => found.get(keyOf(wanted)) ?? [])
        },
      })
      this.kinds.set(key, kind)
    }
    return kind
  }
}

function filterOf(sought: string[], questions: Wanted[]): Filter {
  const each = unique(questions, keyOf)
  const [field = '_id', ...others] = sought
  if (others.length === 0 && each.length > 1) return { [field]: { $in: each.flat() } }
  const filters = each.map((wanted) => Object.fromEntries(sought.map((name, at) => [name, wanted[at]])))
  const [only, more] = filters
  return only !== undefined && more === undefined ? only : { $or: filters }
}

function isValue(wanted: Filter[string]): wanted is Value {
  return Buffer.isBuffer(wanted) || typeof wanted === 'string' || typeof wanted === 'number'
}

/** Numbers and binary values of the fields that are sought stand in no text, so that nothing is taken for another. */
function keyOf(wanted: Wanted): string {
  return wanted.map((value) => (Buffer.isBuffer(value) ? value.toString('hex') : String(value))).join(' ')
}
