import { TOPICS } from '../../protocol/profile.js'

/** The tables, or collections, whose rows follow from bytes, proofs and admissions, and that hold nothing else. */
export const DERIVED = [
  'graph_traits',
  'graph_outputs',
  'graph_nodes',
  'graph_names',
  'graph_silent_facts',
  'graph_backlog',
] as const

/** What the outputs of a topic are in the index, and in what silent transactions would say: tables, and kinds of facts. */
export interface ComparedSide {
  topic: string
  /** The first has each output once. */
  tables: [Shown, ...Shown[]]
  kinds: string[]
}

type Shown = 'graph_outputs' | 'graph_nodes' | 'graph_names'

export const COMPARED_SIDES: ComparedSide[] = [
  { topic: TOPICS.ordinals, tables: ['graph_outputs'], kinds: ['output'] },
  { topic: TOPICS.names, tables: ['graph_nodes', 'graph_names'], kinds: ['node', 'name'] },
]

/** About how many admissions are compared at once: few enough to take some milliseconds. */
export const COMPARED_PART = 2000

/** How many owners of pieces, and how many transactions, a rebuild looks at at once. */
export const REBUILD_PAGE = 500
