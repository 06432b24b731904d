<#
.SYNOPSIS
Installs a release of yolo for the current user on Windows, without administrator rights.
.DESCRIPTION
The archive is verified against SHA256SUMS before it is unpacked. Training itself runs in WSL2:
`yolo setup --wsl` prepares this PC for it.
.PARAMETER From
A folder or an http(s) URL that contains a release. The default is the folder of this script.
.PARAMETER To
The folder to install into. The default is the user's local programs.
.EXAMPLE
powershell -ExecutionPolicy Bypass -File install.ps1 -From D:\Downloads\yolo
#>
param(
  [string]$From = $PSScriptRoot,
  [string]$To = (Join-Path $env:LOCALAPPDATA 'Programs\yolo')
)
$ErrorActionPreference = 'Stop'
# A progress bar makes downloads many times slower in Windows PowerShell.
$ProgressPreference = 'SilentlyContinue'

function Stop-Install([string]$Message) {
  [Console]::Error.WriteLine("error: $Message")
  exit 1
}

if (-not [Environment]::Is64BitOperatingSystem -or $env:PROCESSOR_ARCHITECTURE -eq 'ARM64') {
  Stop-Install 'yolo does not support this CPU: it needs 64-bit Windows on an Intel or AMD CPU'
}

# A relative path in PATH would mean another folder.
$To = $ExecutionContext.SessionState.Path.GetUnresolvedProviderPathFromPSPath($To)

$work = Join-Path ([IO.Path]::GetTempPath()) ("yolo-install-" + [Guid]::NewGuid())
New-Item -ItemType Directory -Path $work | Out-Null
try {
  function Get-Part([string]$Name) {
    $target = Join-Path $work $Name
    try {
      if ($From -match '^https?://') {
        [Net.ServicePointManager]::SecurityProtocol = [Net.ServicePointManager]::SecurityProtocol -bor [Net.SecurityProtocolType]::Tls12
        Invoke-WebRequest -UseBasicParsing -Uri ($From.TrimEnd('/') + '/' + $Name) -OutFile $target
      } else {
        Copy-Item -LiteralPath (Join-Path $From $Name) -Destination $target
      }
    } catch {
      Stop-Install "cannot get $Name from ${From}: $($_.Exception.Message)"
    }
    $target
  }

  $sums = Get-Content -LiteralPath (Get-Part 'SHA256SUMS')
  $line = $sums | Where-Object { $_ -match '^([0-9a-f]{64}) [ *](yolo-\d[^ /\\]*-x86_64-pc-windows-gnu\.zip)$' } | Select-Object -First 1
  if (-not $line) { Stop-Install "SHA256SUMS of $From lists no archive for Windows" }
  $null = $line -match '^([0-9a-f]{64}) [ *](.+)$'
  $expected = $Matches[1]
  $name = $Matches[2]
  $archive = Get-Part $name
  $found = (Get-FileHash -Algorithm SHA256 -LiteralPath $archive).Hash.ToLowerInvariant()
  if ($found -ne $expected) {
    Stop-Install "$name is damaged: its SHA-256 is $found, but SHA256SUMS says $expected; nothing was changed"
  }

  # Next to the target: only on the same drive is moving a folder atomic.
  $new = "$To.new"
  $old = "$To.old"
  New-Item -ItemType Directory -Force -Path (Split-Path -Parent $To) | Out-Null
  foreach ($left in $new, $old) {
    if (Test-Path -LiteralPath $left) { Remove-Item -Recurse -Force -LiteralPath $left }
  }
  Expand-Archive -LiteralPath $archive -DestinationPath $new
  $folder = Get-ChildItem -LiteralPath $new -Directory | Select-Object -First 1
  $version, $why = $null, ''
  try { $version = & (Join-Path $folder.FullName 'yolo.exe') --version } catch { $why = $_.Exception.Message }
  if (-not $version -or $LASTEXITCODE -ne 0) {
    Remove-Item -Recurse -Force -LiteralPath $new
    Stop-Install "the yolo.exe of $name does not run here; nothing was changed. $why"
  }

  try {
    if (Test-Path -LiteralPath $To) { Move-Item -LiteralPath $To -Destination $old }
  } catch {
    Remove-Item -Recurse -Force -LiteralPath $new
    Stop-Install "$To cannot be replaced: $($_.Exception.Message) Stop every running yolo and try again; nothing was changed."
  }
  Move-Item -LiteralPath $folder.FullName -Destination $To
  foreach ($left in $new, $old) {
    if (Test-Path -LiteralPath $left) { Remove-Item -Recurse -Force -LiteralPath $left }
  }

  # Read unexpanded: [Environment] would replace %USERPROFILE% and the like by their values.
  $variables = [Microsoft.Win32.Registry]::CurrentUser.CreateSubKey('Environment')
  $path = [string]$variables.GetValue('Path', '', 'DoNotExpandEnvironmentNames')
  if (-not (($path -split ';') -contains $To)) {
    $variables.SetValue('Path', ($path.TrimEnd(';') + ';' + $To).TrimStart(';'), 'ExpandString')
    # Setting a variable this way notifies running programs; this one is removed immediately.
    $unique = 'yolo-' + [Guid]::NewGuid()
    [Environment]::SetEnvironmentVariable($unique, 'yolo', 'User')
    [Environment]::SetEnvironmentVariable($unique, [NullString]::Value, 'User')
    Write-Output "$To will be in PATH in new terminals."
  }
  $variables.Close()
  Write-Output "installed $version. Next, in a new terminal: yolo setup --wsl"
} finally {
  Remove-Item -Recurse -Force -LiteralPath $work -ErrorAction SilentlyContinue
}
