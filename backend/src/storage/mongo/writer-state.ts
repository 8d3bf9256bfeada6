import { type Collection, type Db, MongoServerError } from 'mongodb'
import { answered } from './answered.js'

/**
 * The one document by which writers take turns, and by which what they write is committed. A server changes one document
 * in one step, and no server needs more than that for it.
 */
export interface WriterState {
  _id: string
  /** Moves on with every entry of the journal that is committed. */
  version: number
  /** Moves on with those that change or take away what readers may have seen together. */
  turns: number
  /** What is committed and not applied to its end; null where all is. */
  entry: CommittedEntry | null
  /** Whose turn it is to write; null where it is nobody's. */
  holder: string | null
  /** Moves on while the holder lives. */
  beat: number
  /** Which version of the index the collections hold; absent where an earlier version of this code made them. */
  schema?: number
}

/** Changes where what is indexed does: collections have no migrations. */
export const SCHEMA = 2

/** An entry of the journal that counts. */
export interface CommittedEntry {
  id: string
  /** In how many documents it stands. */
  parts: number
  /** Set where readers see what is changed or taken away, and are to wait. */
  turns: boolean
}

/** The key of the one by which all that is written is committed. */
export const STATE_ID = 'graph'
const DUPLICATE_KEY = 11_000

/** Answered where all is on the disks that the server counts on. */
export const DURABLE = { writeConcern: { w: 'majority', journal: true } } as const

export function stateIn(db: Db): Collection<WriterState> {
  return db.collection<WriterState>('graph_state', { ...DURABLE, readPreference: 'primary' })
}

/** Makes the document where it is not there. */
export async function openState(state: Collection<WriterState>, id = STATE_ID): Promise<void> {
  const first: Omit<WriterState, '_id'> = {
    version: 0,
    turns: 0,
    entry: null,
    holder: null,
    beat: 0,
    schema: SCHEMA,
  }
  try {
    await answered((within) =>
      state.updateOne({ _id: id }, { $setOnInsert: first }, { upsert: true, ...within }),
    )
  } catch (error) {
    // Somebody else was first.
    if (!(error instanceof MongoServerError) || error.code !== DUPLICATE_KEY) throw error
  }
}
