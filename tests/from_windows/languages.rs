//! What `wsl.exe` says in five languages. The messages are those of WSL's own localization files: microsoft/WSL,
//! `localization/strings/LANGUAGE/Resources.resw`, `MessageNoDefaultDistro`, `MessageEnableVirtualization` and
//! `MessageErrorCode`. WSL prints no code below the first (`src/windows/common/WslClient.cpp`).

/// A language of Windows.
pub(crate) struct Language {
    pub(crate) name: &'static str,
    /// No distribution is installed.
    pub(crate) no_distribution: &'static str,
    /// No virtual machine can start.
    pub(crate) no_virtual_machine: &'static str,
    /// What precedes a code of an error.
    pub(crate) code: &'static str,
}

pub(crate) const LANGUAGES: [Language; 5] = [
    Language {
        name: "de",
        no_distribution: "Windows-Subsystem für Linux verfügt über keine installierten Distributionen.\n\
                          Sie können dies beheben, indem Sie eine Distribution mit den folgenden Anweisungen installieren:\n\n\
                          \"wsl.exe --list --online' zum Auflisten verfügbarer Distributionen verwenden\n\
                          und \"wsl.exe --install <Distro>\".\n",
        no_virtual_machine: "WSL2 kann nicht gestartet werden, da die Virtualisierung auf diesem Computer nicht aktiviert ist.\n\
                             Stellen Sie sicher, dass die optionale Komponente „VM-Plattform“ aktiviert ist und die Virtualisierung \
                             in den Firmwareeinstellungen Ihres Computers eingeschaltet ist.\n\n\
                             Aktivieren Sie „VM-Plattform“, indem Sie folgenden Befehl ausführen: wsl.exe --install --no-distribution\n\n\
                             Weitere Informationen finden Sie unter https://aka.ms/enablevirtualization\n",
        code: "Fehlercode: ",
    },
    Language {
        name: "fr",
        no_distribution: "Sous-système Windows pour Linux n’a aucune distribution installée.\n\
                          Vous pouvez résoudre ce problème en installant une distribution avec les instructions ci-dessous :\n\n\
                          Utiliser wsl.exe --list --online' pour répertorier les distributions disponibles\n\
                          et 'wsl.exe --install <Distro>' à installer.\n",
        no_virtual_machine: "WSL2 ne peut pas démarrer, car la virtualisation n’est pas activée sur cet ordinateur.\n\
                             Vérifiez que le composant facultatif « Plateforme d’ordinateur virtuel » est activé et que la \
                             virtualisation est activée dans les paramètres du microprogramme de votre ordinateur.\n\n\
                             Activer « Plateforme d’ordinateur virtuel » en exécutant : wsl.exe --install --no-distribution\n\n\
                             Pour plus d’informations, visitez https://aka.ms/enablevirtualization\n",
        code: "Code d'erreur : ",
    },
    Language {
        name: "it",
        no_distribution: "sottosistema Windows per Linux non ha distribuzioni installate.\n\
                          Per risolvere il problema, installare una distribuzione con le istruzioni seguenti:\n\n\
                          Usare 'wsl.exe --list --online' per elencare le distribuzioni disponibili\n\
                          e 'wsl.exe --install <Distro>' per l'installazione.\n",
        no_virtual_machine: "Impossibile avviare WSL2 perché la virtualizzazione non è abilitata in questo computer.\n\
                             Verificare che il componente facoltativo \"Piattaforma macchina virtuale\" sia abilitato e che la \
                             virtualizzazione sia attivata nelle impostazioni del firmware del computer.\n\n\
                             Abilitare \"Virtual Machine Platform\" eseguendo: wsl.exe --install --no-distribution\n\n\
                             Per informazioni, visitare https://aka.ms/enablevirtualization\n",
        code: "Codice errore: ",
    },
    Language {
        name: "ja",
        no_distribution: "Linux 用 Windows サブシステムにインストールされているディストリビューションはありません。\n\
                          この問題を解決するには、以下の手順に従ってディストリビューションをインストールしてください:\n\n\
                          'wsl.exe --list --online' を使用して利用可能な配布を一覧表示する\n\
                          および 'wsl.exe --install <Distro>' を使用してインストールしてください。\n",
        no_virtual_machine: "このコンピューターで仮想化が有効になっていないため、WSL2 を開始できません。\n\
                             [仮想マシン プラットフォーム] オプション　コンポーネントが有効になっており、コンピューターのファームウェア設定で\
                             仮想化がオンになっていることを確認してください。\n\n\
                             次のコマンドを実行して [仮想マシン プラットフォーム] を有効にします: wsl.exe --install --no-distribution\n\n\
                             詳細については、https://aka.ms/enablevirtualization をご覧ください\n",
        code: "エラー コード: ",
    },
    Language {
        name: "zh",
        no_distribution: "适用于 Linux 的 Windows 子系统没有已安装的分发。\n\
                          可按照以下说明安装分发来解决此问题:\n\n\
                          使用 'wsl.exe --list --online' 列出可用的分发\n\
                          和 'wsl.exe --install <Distro>' 进行安装。\n",
        no_virtual_machine: "WSL2 无法启动，因为此计算机上未启用虚拟化。\n\
                             请确保计算机固件设置中“虚拟机平台”可选组件已启用，且虚拟化已开启。\n\n\
                             通过运行以下命令启用“虚拟机平台”: wsl.exe --install --no-distribution\n\n\
                             有关信息，请访问 https://aka.ms/enablevirtualization\n",
        code: "错误代码: ",
    },
];
