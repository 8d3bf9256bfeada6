/** Lays out files, folders and streams as outputs, for wallets and scripts. Does not read files, sign or send. */
export { PROFILES, type Profile, type ProfileName } from '../../backend/src/protocol/profile.js'
export {
  DEFAULT_STREAM_CHUNK_SIZE,
  layOut,
  layOutFile,
  layOutStream,
  layOutStreamChunk,
  type PublishFile,
  type StreamOptions,
  streamChunkCount,
} from './file.js'
export { type FolderEntry, type LaidOutFolder, layOutFolder, type PublishFolder } from './folder.js'
export type { PublishOutput } from './inscribe.js'
export { contentTypeOf, PublishError, type PublishErrorCode } from './inscribe.js'
