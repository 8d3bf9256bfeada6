import type { CommandStartedEvent, Db, MongoClient } from 'mongodb'

/** What a find, an update or a delete looks for, and in which order it wants it. */
export interface Asked {
  collection: string
  filter: Filter
  sort: Record<string, number>
  limited: boolean
}

type Filter = Record<string, unknown>

/** The fields of an index in their order, each upwards. */
export type Index = string[]

/** Keeps what a client asks from now on, each kind once. The client is made with `monitorCommands`. */
export function keepAsked(client: MongoClient): () => Asked[] {
  const kept = new Map<string, Asked>()
  client.on('commandStarted', ({ command }: CommandStartedEvent) => {
    for (const asked of askedBy(command)) kept.set(shapeOf(asked), asked)
  })
  return () => [...kept.values()]
}

function askedBy(command: Record<string, unknown>): Asked[] {
  const { find, findAndModify, update, delete: remove, updates, deletes } = command as Record<string, string>
  const sort = (command.sort ?? {}) as Asked['sort']
  const filters = (statements: unknown) => (statements as { q: Filter }[]).map(({ q }) => q)
  const asked = (collection: string, filter: Filter, limited: boolean): Asked => ({
    collection,
    filter,
    sort: sort instanceof Map ? Object.fromEntries(sort) : sort,
    limited,
  })
  if (find) return [asked(find, command.filter as Filter, command.limit !== undefined)]
  if (findAndModify) return [asked(findAndModify, command.query as Filter, true)]
  if (update) return filters(updates).map((filter) => asked(update, filter, false))
  if (remove) return filters(deletes).map((filter) => asked(remove, filter, false))
  return []
}

/** The same for all that asks for the same fields in the same way, whatever their values. */
function shapeOf({ collection, filter, sort, limited }: Asked): string {
  return JSON.stringify([collection, shapeOfFilter(filter), sort, limited])
}

function shapeOfFilter(filter: Filter): unknown {
  return Object.entries(filter).map(([field, wanted]) => {
    if (!Array.isArray(wanted)) return [field, kindOf(wanted)]
    return [field, [...new Set(wanted.map((each) => JSON.stringify(shapeOfFilter(each))))]]
  })
}

/**
 * Those that no index of the collection leads to: a server would look at every document for them, or sort all that match.
 * Some servers say how they would find something and others do not; so this goes by the rule that all of them have: the
 * first fields of an index are asked to be equal to something, and what comes next in it gives a range, or the order.
 */
export async function withoutIndex(db: Db, all: Asked[]): Promise<Asked[]> {
  const indexes = new Map<string, Index[]>()
  for (const { name } of await db.listCollections({}, { nameOnly: true }).toArray()) {
    const found = await db.collection(name).indexes()
    indexes.set(
      name,
      found.map(({ key }) => Object.keys(key)),
    )
  }
  // Every collection has the index of its keys, once there is anything in it.
  return all.filter((asked) => !isLedTo(asked, [['_id'], ...(indexes.get(asked.collection) ?? [])]))
}

/** Whether one of the indexes leads to what is asked, and has it in its order. */
export function isLedTo(asked: Omit<Asked, 'collection'>, indexes: Index[]): boolean {
  const { filter, sort, limited } = asked
  const all = conditionsIn(filter)
  // Any one will do: the first that is there is taken.
  if (all.length === 0 && Object.keys(sort).length === 0) return limited
  const branches = all.filter(([field]) => field === '$or')
  const conditions = all.filter(([field]) => field !== '$or')
  if (indexes.some((index) => leads(index, { conditions, sort, limited }))) return true
  // Each branch is looked up by itself; what they give is in no order.
  return (
    Object.keys(sort).length === 0 &&
    branches.some(([, filters]) =>
      (filters as Filter[]).every((branch) => isLedTo({ filter: branch, sort, limited }, indexes)),
    )
  )
}

function conditionsIn(filter: Filter): [field: string, wanted: unknown][] {
  return Object.entries(filter).flatMap((condition) =>
    condition[0] === '$and' ? (condition[1] as Filter[]).flatMap(conditionsIn) : [condition],
  )
}

function leads(
  index: Index,
  { conditions, sort, limited }: { conditions: [string, unknown][]; sort: Asked['sort']; limited: boolean },
): boolean {
  const kinds = new Map(conditions.map(([field, wanted]) => [field, kindOf(wanted)]))
  const order = Object.keys(sort)
  // Several values of one field are several places in the index: what is found at them is not in one order.
  const isFixed = (field: string): boolean =>
    kinds.get(field) === 'equal' || (kinds.get(field) === 'any of' && order.length === 0)
  let fixed = 0
  while (fixed < index.length && isFixed(index[fixed] ?? '')) fixed++
  const rest = index.slice(fixed)
  const unsorted = order.filter((field) => kinds.get(field) !== 'equal')
  const isOneWay = new Set(unsorted.map((field) => sort[field])).size <= 1
  if (!isOneWay || unsorted.some((field, at) => rest[at] !== field)) return false
  const [next = ''] = rest
  return fixed > 0 || kinds.get(next) === 'range' || (unsorted.length > 0 && limited)
}

type Kind = 'equal' | 'any of' | 'range' | 'other'

/** How a field is asked for. */
function kindOf(wanted: unknown): Kind {
  const isPlain =
    wanted !== null && typeof wanted === 'object' && Object.getPrototypeOf(wanted) === Object.prototype
  if (!isPlain) return 'equal'
  const operators = Object.keys(wanted)
  if (operators.includes('$in')) return 'any of'
  return operators.some((operator) => ['$gt', '$gte', '$lt', '$lte'].includes(operator)) ? 'range' : 'other'
}
