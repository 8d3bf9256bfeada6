/** Why a backup cannot be written or restored, in one line; what was begun is undone. */
export class BackupError extends Error {
  override readonly name = 'BackupError'
}
