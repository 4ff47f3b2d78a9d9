<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="zh_CN" sourcelanguage="en">
<context>
    <name>AboutDialog</name>
    <message>
        <source>About Floodmark</source>
        <translation>关于水位线 Floodmark</translation>
    </message>
    <message>
        <source>Floodmark {0}</source>
        <translation>水位线 Floodmark {0}</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>关闭</translation>
    </message>
    <message>
        <source>Trains on your own card, watches it, and says that memory will run out before it does.</source>
        <translation>在自己的显卡上训练，看着显卡，并在显存用尽之前告诉您。</translation>
    </message>
    <message>
        <source>Apache License 2.0. No warranty.</source>
        <translation>Apache 许可证 2.0，不提供任何担保。</translation>
    </message>
    <message>
        <source>The built-in pictures of cats and dogs come from the package animal-shape-mnist (MIT licence).</source>
        <translation>内置的猫狗图片来自软件包 animal-shape-mnist（MIT 许可证）。</translation>
    </message>
    <message>
        <source>Made with Qt {0} for Python (LGPL 3), pyqtgraph, PyTorch and NVIDIA&apos;s NVML.</source>
        <translation>使用 Qt {0} for Python（LGPL 3）、pyqtgraph、PyTorch 和 NVIDIA NVML 构建。</translation>
    </message>
</context>
<context>
    <name>AlertCard</name>
    <message>
        <source>Copy</source>
        <translation>复制</translation>
    </message>
</context>
<context>
    <name>Alerts</name>
    <message>
        <source>{0} · step {1}</source>
        <translation>{0} · 第 {1} 步</translation>
    </message>
    <message>
        <source>Over after {0}</source>
        <translation>{0}后解除</translation>
    </message>
    <message>
        <source>Ignored</source>
        <translation>已忽略</translation>
    </message>
    <message>
        <source>Memory ran out at step {0}.</source>
        <translation>显存已在第 {0} 步耗尽。</translation>
    </message>
    <message>
        <source>The run ended before it came to that.</source>
        <translation>训练在此之前已结束。</translation>
    </message>
    <message>
        <source>Details</source>
        <translation>详情</translation>
    </message>
    <message>
        <source>Over  {0}</source>
        <translation>已解除  {0}</translation>
    </message>
</context>
<context>
    <name>AlertsPanel</name>
    <message>
        <source>No alert in this run. When memory is going to run out, the reason, the time and what to do stand here, minutes before it happens.</source>
        <translation>本次训练没有告警。显存将要用尽时，会提前几分钟在这里说明原因、时间和对策。</translation>
    </message>
    <message>
        <source>Nothing is wrong now.</source>
        <translation>当前一切正常。</translation>
    </message>
</context>
<context>
    <name>Announcements</name>
    <message>
        <source>Imminent: {0}</source>
        <translation>即将发生：{0}</translation>
    </message>
</context>
<context>
    <name>Cards</name>
    <message>
        <source>Utilisation</source>
        <translation>利用率</translation>
    </message>
    <message>
        <source>Memory bus</source>
        <translation>显存带宽占用</translation>
    </message>
    <message>
        <source>VRAM used</source>
        <translation>已用显存</translation>
    </message>
    <message>
        <source>Power</source>
        <translation>功耗</translation>
    </message>
    <message>
        <source>Power, 1 s mean</source>
        <translation>功耗（1 秒平均）</translation>
    </message>
    <message>
        <source>Temperature</source>
        <translation>温度</translation>
    </message>
    <message>
        <source>SM clock</source>
        <translation>SM 频率</translation>
    </message>
    <message>
        <source>Memory clock</source>
        <translation>显存频率</translation>
    </message>
    <message>
        <source>Slowed by power</source>
        <translation>功耗限制降频</translation>
    </message>
    <message>
        <source>Slowed by heat</source>
        <translation>过热降频</translation>
    </message>
    <message>
        <source>PCIe in</source>
        <translation>PCIe 接收</translation>
    </message>
    <message>
        <source>PCIe out</source>
        <translation>PCIe 发送</translation>
    </message>
    <message>
        <source>Fan</source>
        <translation>风扇</translation>
    </message>
    <message>
        <source>Performance state</source>
        <translation>性能状态</translation>
    </message>
    <message>
        <source>Power limit</source>
        <translation>功耗上限</translation>
    </message>
    <message>
        <source>Energy</source>
        <translation>耗电量</translation>
    </message>
    <message>
        <source>Encoder</source>
        <translation>编码器</translation>
    </message>
    <message>
        <source>Decoder</source>
        <translation>解码器</translation>
    </message>
    <message>
        <source>ECC errors</source>
        <translation>ECC 错误</translation>
    </message>
    <message>
        <source>PCIe generation</source>
        <translation>PCIe 代数</translation>
    </message>
    <message>
        <source>PCIe lanes</source>
        <translation>PCIe 通道数</translation>
    </message>
    <message>
        <source>BAR1 used</source>
        <translation>BAR1 已用</translation>
    </message>
    <message>
        <source>Memory temperature</source>
        <translation>显存温度</translation>
    </message>
    <message>
        <source>SM activity</source>
        <translation>SM 活跃度</translation>
    </message>
    <message>
        <source>SM occupancy</source>
        <translation>SM 占用率</translation>
    </message>
    <message>
        <source>Tensor activity</source>
        <translation>张量核心活跃度</translation>
    </message>
    <message>
        <source>Memory bandwidth</source>
        <translation>显存带宽</translation>
    </message>
    <message>
        <source>FP16 activity</source>
        <translation>FP16 活跃度</translation>
    </message>
    <message>
        <source>FP32 activity</source>
        <translation>FP32 活跃度</translation>
    </message>
    <message>
        <source>FP64 activity</source>
        <translation>FP64 活跃度</translation>
    </message>
    <message>
        <source>Graphics clock</source>
        <translation>图形频率</translation>
    </message>
    <message>
        <source>Video clock</source>
        <translation>视频频率</translation>
    </message>
    <message>
        <source>Slowed by sync boost</source>
        <translation>因同步加速降频</translation>
    </message>
    <message>
        <source>Slowed by the board limit</source>
        <translation>因板卡限制降频</translation>
    </message>
    <message>
        <source>Slowed for want of work</source>
        <translation>因负载低降频</translation>
    </message>
    <message>
        <source>Slowed by the voltage limit</source>
        <translation>因电压限制降频</translation>
    </message>
    <message>
        <source>Held back by</source>
        <translation>受限原因</translation>
    </message>
    <message>
        <source>Room to the limit</source>
        <translation>距温度上限</translation>
    </message>
    <message>
        <source>Power of the module</source>
        <translation>模组功耗</translation>
    </message>
    <message>
        <source>JPEG engine</source>
        <translation>JPEG 引擎</translation>
    </message>
    <message>
        <source>Optical flow engine</source>
        <translation>光流引擎</translation>
    </message>
    <message>
        <source>Encoder sessions</source>
        <translation>编码会话</translation>
    </message>
    <message>
        <source>PCIe replays</source>
        <translation>PCIe 重传</translation>
    </message>
    <message>
        <source>NVLink in</source>
        <translation>NVLink 接收</translation>
    </message>
    <message>
        <source>NVLink out</source>
        <translation>NVLink 发送</translation>
    </message>
    <message>
        <source>NVLinks active</source>
        <translation>活动 NVLink 数</translation>
    </message>
    <message>
        <source>ECC corrections</source>
        <translation>ECC 纠正</translation>
    </message>
    <message>
        <source>ECC corrections, ever</source>
        <translation>ECC 纠正（累计）</translation>
    </message>
    <message>
        <source>ECC errors, ever</source>
        <translation>ECC 错误（累计）</translation>
    </message>
    <message>
        <source>Rows remapped as a caution</source>
        <translation>预防性重映射行</translation>
    </message>
    <message>
        <source>Rows remapped after errors</source>
        <translation>出错后重映射行</translation>
    </message>
    <message>
        <source>Remapping waits for a reset</source>
        <translation>重映射待复位</translation>
    </message>
    <message>
        <source>Remapping failed</source>
        <translation>重映射失败</translation>
    </message>
    <message>
        <source>Retired pages</source>
        <translation>停用页</translation>
    </message>
    <message>
        <source>MPS clients</source>
        <translation>MPS 客户端</translation>
    </message>
    <message>
        <source>VRAM in all</source>
        <translation>显存总量</translation>
    </message>
    <message>
        <source>Kept by the driver</source>
        <translation>驱动保留</translation>
    </message>
    <message>
        <source>Architecture</source>
        <translation>架构</translation>
    </message>
    <message>
        <source>Compute capability</source>
        <translation>计算能力</translation>
    </message>
    <message>
        <source>SMs</source>
        <translation>SM 数量</translation>
    </message>
    <message>
        <source>Highest power limit</source>
        <translation>最高功耗上限</translation>
    </message>
    <message>
        <source>Slows at</source>
        <translation>降频温度</translation>
    </message>
    <message>
        <source>Shuts down at</source>
        <translation>关机温度</translation>
    </message>
    <message>
        <source>Highest SM clock</source>
        <translation>最高 SM 频率</translation>
    </message>
    <message>
        <source>Driver</source>
        <translation>驱动版本</translation>
    </message>
    <message>
        <source>CUDA of the driver</source>
        <translation>驱动支持的 CUDA</translation>
    </message>
    <message>
        <source>VBIOS</source>
        <translation>VBIOS</translation>
    </message>
    <message>
        <source>UUID</source>
        <translation>UUID</translation>
    </message>
    <message>
        <source>Name</source>
        <translation>名称</translation>
    </message>
    <message>
        <source>Maker</source>
        <translation>厂商</translation>
    </message>
    <message>
        <source>Index in NVML</source>
        <translation>NVML 序号</translation>
    </message>
    <message>
        <source>Index in torch</source>
        <translation>torch 序号</translation>
    </message>
    <message>
        <source>Bus</source>
        <translation>总线</translation>
    </message>
    <message>
        <source>NUMA node</source>
        <translation>NUMA 节点</translation>
    </message>
    <message>
        <source>Simulated</source>
        <translation>模拟</translation>
    </message>
    <message>
        <source>Memory shared with the processor</source>
        <translation>与处理器共享内存</translation>
    </message>
    <message>
        <source>Spills into RAM</source>
        <translation>溢出到内存</translation>
    </message>
    <message>
        <source>Width of the memory bus</source>
        <translation>显存位宽</translation>
    </message>
    <message>
        <source>BAR1 in all</source>
        <translation>BAR1 总量</translation>
    </message>
    <message>
        <source>Power limit at the start</source>
        <translation>开始时的功耗上限</translation>
    </message>
    <message>
        <source>Power limit of the maker</source>
        <translation>出厂功耗上限</translation>
    </message>
    <message>
        <source>Lowest power limit</source>
        <translation>最低功耗上限</translation>
    </message>
    <message>
        <source>Energy is</source>
        <translation>能耗来自</translation>
    </message>
    <message>
        <source>Memory slows at</source>
        <translation>显存降频温度</translation>
    </message>
    <message>
        <source>Meant to stay below</source>
        <translation>建议温度上限</translation>
    </message>
    <message>
        <source>Highest memory clock</source>
        <translation>显存最高频率</translation>
    </message>
    <message>
        <source>Highest PCIe generation</source>
        <translation>PCIe 最高代数</translation>
    </message>
    <message>
        <source>Most PCIe lanes</source>
        <translation>PCIe 最多通道</translation>
    </message>
    <message>
        <source>Compute mode</source>
        <translation>计算模式</translation>
    </message>
    <message>
        <source>Persistence</source>
        <translation>持久模式</translation>
    </message>
    <message>
        <source>ECC</source>
        <translation>ECC</translation>
    </message>
    <message>
        <source>MIG</source>
        <translation>MIG</translation>
    </message>
    <message>
        <source>Driver model</source>
        <translation>驱动模型</translation>
    </message>
    <message>
        <source>A screen hangs on it</source>
        <translation>接有显示器</translation>
    </message>
    <message>
        <source>on</source>
        <translation>开</translation>
    </message>
    <message>
        <source>off</source>
        <translation>关</translation>
    </message>
    <message>
        <source>shared by processes</source>
        <translation>多进程共享</translation>
    </message>
    <message>
        <source>one process at a time</source>
        <translation>单进程独占</translation>
    </message>
    <message>
        <source>no process may compute</source>
        <translation>禁止计算</translation>
    </message>
    <message>
        <source>the driver&apos;s counter</source>
        <translation>驱动计数器</translation>
    </message>
    <message>
        <source>power over time</source>
        <translation>功耗积分</translation>
    </message>
    <message>
        <source>the model&apos;s</source>
        <translation>模型计算</translation>
    </message>
    <message>
        <source>heat (hardware)</source>
        <translation>过热（硬件）</translation>
    </message>
    <message>
        <source>heat</source>
        <translation>过热</translation>
    </message>
    <message>
        <source>power brake</source>
        <translation>功率制动</translation>
    </message>
    <message>
        <source>hardware slowdown</source>
        <translation>硬件降频</translation>
    </message>
    <message>
        <source>power limit</source>
        <translation>功耗上限</translation>
    </message>
    <message>
        <source>sync boost</source>
        <translation>同步加速</translation>
    </message>
    <message>
        <source>clocks that were set</source>
        <translation>手动设定的频率</translation>
    </message>
    <message>
        <source>clock of the screen</source>
        <translation>显示频率</translation>
    </message>
    <message>
        <source>nothing to do</source>
        <translation>空闲</translation>
    </message>
    <message>
        <source>No card</source>
        <translation>没有显卡</translation>
    </message>
    <message>
        <source>memory unknown</source>
        <translation>显存未知</translation>
    </message>
    <message>
        <source>GPU {0} · {1} · {2}</source>
        <translation>GPU {0} · {1} · {2}</translation>
    </message>
    <message>
        <source>torch {0} ↔ NVML {1} ↔ {2}</source>
        <translation>torch {0} ↔ NVML {1} ↔ {2}</translation>
    </message>
    <message>
        <source>{0}/s</source>
        <translation>{0}/秒</translation>
    </message>
    <message>
        <source>nothing</source>
        <translation>无</translation>
    </message>
    <message>
        <source>yes</source>
        <translation>是</translation>
    </message>
    <message>
        <source>no</source>
        <translation>否</translation>
    </message>
</context>
<context>
    <name>Categories</name>
    <message>
        <source>Parameters</source>
        <translation>参数</translation>
    </message>
    <message>
        <source>Gradients</source>
        <translation>梯度</translation>
    </message>
    <message>
        <source>Optimizer state</source>
        <translation>优化器状态</translation>
    </message>
    <message>
        <source>Activations</source>
        <translation>激活</translation>
    </message>
    <message>
        <source>Workspace</source>
        <translation>工作区</translation>
    </message>
    <message>
        <source>Temporaries</source>
        <translation>临时张量</translation>
    </message>
    <message>
        <source>Inputs</source>
        <translation>输入</translation>
    </message>
    <message>
        <source>Other tensors</source>
        <translation>其他张量</translation>
    </message>
    <message>
        <source>CUDA context</source>
        <translation>CUDA 上下文</translation>
    </message>
    <message>
        <source>Other processes</source>
        <translation>其他进程</translation>
    </message>
    <message>
        <source>Cached, idle</source>
        <translation>缓存（空闲）</translation>
    </message>
</context>
<context>
    <name>Charts</name>
    <message>
        <source>Charts</source>
        <translation>曲线</translation>
    </message>
    <message>
        <source>Loss and accuracy</source>
        <translation>损失与准确率</translation>
    </message>
    <message>
        <source>Learning rate and gradient</source>
        <translation>学习率与梯度</translation>
    </message>
    <message>
        <source>VRAM</source>
        <translation>显存</translation>
    </message>
    <message>
        <source>Utilisation</source>
        <translation>利用率</translation>
    </message>
    <message>
        <source>SM activity</source>
        <translation>SM 活跃度</translation>
    </message>
    <message>
        <source>Power, share of its limit</source>
        <translation>功耗占上限的比例</translation>
    </message>
    <message>
        <source>Share of the time in which at least one kernel ran. A kernel that uses a fraction of the card counts as much as one that uses all of it: 100 % does not mean that the card is used up.</source>
        <translation>至少有一个内核在运行的时间占比。只用到显卡一小部分的内核与用满整卡的内核同样计算：100 % 并不表示显卡已被用满。</translation>
    </message>
    <message>
        <source>Share of the multiprocessors (SMs) that had work, over time and over all of them; and the share of time in which their tensor cores worked. Says how much of the card is used, where utilisation only says that it is.</source>
        <translation>有任务的流式多处理器（SM）占比，对时间和全部 SM 取平均；以及张量核心工作的时间占比。它说明显卡用了多少，而利用率只说明显卡在用。</translation>
    </message>
    <message>
        <source>Power as a share of the limit of the card. It rises with the work that is really done, and needs no support by the card.</source>
        <translation>功耗占显卡上限的比例。它随实际完成的工作量上升，也不需要显卡的特别支持。</translation>
    </message>
    <message>
        <source>heat</source>
        <translation>过热</translation>
    </message>
    <message>
        <source>power limit</source>
        <translation>功耗上限</translation>
    </message>
    <message>
        <source>Hopper and newer only</source>
        <translation>仅 Hopper 及更新架构</translation>
    </message>
    <message>
        <source>{0}, {1}</source>
        <translation>{0}，{1}</translation>
    </message>
    <message>
        <source>slowed {0}</source>
        <translation>降频 {0}</translation>
    </message>
    <message>
        <source>SM {0}</source>
        <translation>SM {0}</translation>
    </message>
    <message>
        <source>tensor {0}</source>
        <translation>张量核心 {0}</translation>
    </message>
    <message>
        <source>{0} of {1}</source>
        <translation>{1} 的 {0}</translation>
    </message>
    <message>
        <source>Temperature</source>
        <translation>温度</translation>
    </message>
    <message>
        <source>Power</source>
        <translation>功耗</translation>
    </message>
    <message>
        <source>Events</source>
        <translation>事件</translation>
    </message>
    <message>
        <source>train {0}</source>
        <translation>训练 {0}</translation>
    </message>
    <message>
        <source>validation {0}</source>
        <translation>验证 {0}</translation>
    </message>
    <message>
        <source>accuracy {0}</source>
        <translation>准确率 {0}</translation>
    </message>
    <message>
        <source>learning rate {0}</source>
        <translation>学习率 {0}</translation>
    </message>
    <message>
        <source>gradient norm {0}</source>
        <translation>梯度范数 {0}</translation>
    </message>
    <message>
        <source>device {0}</source>
        <translation>设备 {0}</translation>
    </message>
    <message>
        <source>live {0}</source>
        <translation>活跃 {0}</translation>
    </message>
    <message>
        <source>capacity {0}</source>
        <translation>容量 {0}</translation>
    </message>
    <message>
        <source>slows at {0}</source>
        <translation>降频 {0}</translation>
    </message>
    <message>
        <source>limit {0}</source>
        <translation>上限 {0}</translation>
    </message>
    <message>
        <source>step {0}</source>
        <translation>第 {0} 步</translation>
    </message>
    <message>
        <source>No run yet</source>
        <translation>尚未训练</translation>
    </message>
    <message>
        <source>Preparing…</source>
        <translation>正在准备…</translation>
    </message>
    <message>
        <source>No step was finished</source>
        <translation>没有完成任何一步</translation>
    </message>
    <message>
        <source>No card</source>
        <translation>没有显卡</translation>
    </message>
    <message>
        <source>No data yet</source>
        <translation>尚无数据</translation>
    </message>
    <message>
        <source>+{0} hidden</source>
        <translation>另有 {0} 项</translation>
    </message>
    <message>
        <source>A higher window also shows: {0}</source>
        <translation>窗口更高时还会显示：{0}</translation>
    </message>
    <message>
        <source>Live</source>
        <translation>实时</translation>
    </message>
    <message>
        <source>Back to now (Home)</source>
        <translation>回到现在（Home）</translation>
    </message>
    <message>
        <source>1 min</source>
        <translation>1 分</translation>
    </message>
    <message>
        <source>5 min</source>
        <translation>5 分</translation>
    </message>
    <message>
        <source>15 min</source>
        <translation>15 分</translation>
    </message>
    <message>
        <source>1 h</source>
        <translation>1 时</translation>
    </message>
    <message>
        <source>All</source>
        <translation>全部</translation>
    </message>
    <message>
        <source>How much time is shown</source>
        <translation>显示的时间长度</translation>
    </message>
    <message>
        <source>train loss</source>
        <translation>训练损失</translation>
    </message>
    <message>
        <source>validation</source>
        <translation>验证</translation>
    </message>
    <message>
        <source>accuracy</source>
        <translation>准确率</translation>
    </message>
    <message>
        <source>gradient norm</source>
        <translation>梯度范数</translation>
    </message>
    <message>
        <source>device</source>
        <translation>设备</translation>
    </message>
    <message>
        <source>utilisation</source>
        <translation>利用率</translation>
    </message>
    <message>
        <source>temperature</source>
        <translation>温度</translation>
    </message>
    <message>
        <source>power</source>
        <translation>功耗</translation>
    </message>
    <message>
        <source>tensor activity</source>
        <translation>张量核心活跃度</translation>
    </message>
    <message>
        <source>slowed by</source>
        <translation>降频原因</translation>
    </message>
    <message>
        <source>forecast: {0}</source>
        <translation>预测：{0}</translation>
    </message>
    <message>
        <source>rescued, batch {0}</source>
        <translation>已挽救，批量 {0}</translation>
    </message>
    <message>
        <source>rescued, validation {0}</source>
        <translation>已挽救，验证批量 {0}</translation>
    </message>
    <message>
        <source>batch {0}</source>
        <translation>批量 {0}</translation>
    </message>
    <message>
        <source>process not ended</source>
        <translation>进程未结束</translation>
    </message>
    <message>
        <source>slowed by heat</source>
        <translation>过热降频</translation>
    </message>
    <message>
        <source>finished</source>
        <translation>已完成</translation>
    </message>
    <message>
        <source>stopped</source>
        <translation>已停止</translation>
    </message>
    <message>
        <source>failed</source>
        <translation>已失败</translation>
    </message>
    <message>
        <source>not learning</source>
        <translation>未在学习</translation>
    </message>
    <message>
        <source>learning again</source>
        <translation>恢复学习</translation>
    </message>
    <message>
        <source>rule: pause</source>
        <translation>规则：暂停</translation>
    </message>
    <message>
        <source>rule: save</source>
        <translation>规则：保存</translation>
    </message>
    <message>
        <source>rule: save and pause</source>
        <translation>规则：保存并暂停</translation>
    </message>
    <message>
        <source>rule: shrink</source>
        <translation>规则：缩小批量</translation>
    </message>
    <message>
        <source>rule: stop</source>
        <translation>规则：停止</translation>
    </message>
    <message>
        <source>process told to end</source>
        <translation>已要求进程结束</translation>
    </message>
    <message>
        <source>process ended by force</source>
        <translation>进程被强制结束</translation>
    </message>
    <message>
        <source>process ended</source>
        <translation>进程已结束</translation>
    </message>
    <message>
        <source>process has not ended</source>
        <translation>进程仍未结束</translation>
    </message>
    <message>
        <source>cannot shrink</source>
        <translation>无法再缩小</translation>
    </message>
    <message>
        <source>checkpoint failed</source>
        <translation>检查点保存失败</translation>
    </message>
    <message>
        <source>run</source>
        <translation>训练</translation>
    </message>
    <message>
        <source>epoch</source>
        <translation>轮次</translation>
    </message>
    <message>
        <source>checkpoint</source>
        <translation>检查点</translation>
    </message>
    <message>
        <source>throttled</source>
        <translation>降频</translation>
    </message>
    <message>
        <source>Xid error</source>
        <translation>Xid 错误</translation>
    </message>
    <message>
        <source>allocator retry</source>
        <translation>分配重试</translation>
    </message>
    <message>
        <source>forecast</source>
        <translation>预测</translation>
    </message>
    <message>
        <source>all clear</source>
        <translation>警报解除</translation>
    </message>
    <message>
        <source>out of memory</source>
        <translation>显存不足</translation>
    </message>
    <message>
        <source>rescued</source>
        <translation>已挽救</translation>
    </message>
    <message>
        <source>changed</source>
        <translation>已更改</translation>
    </message>
    <message>
        <source>GPU lost</source>
        <translation>GPU 丢失</translation>
    </message>
    <message>
        <source>GPU back</source>
        <translation>GPU 恢复</translation>
    </message>
    <message>
        <source>files skipped</source>
        <translation>跳过文件</translation>
    </message>
    <message>
        <source>learning</source>
        <translation>学习</translation>
    </message>
    <message>
        <source>error</source>
        <translation>错误</translation>
    </message>
    <message>
        <source>now</source>
        <translation>现在</translation>
    </message>
    <message>
        <source>{0} ago</source>
        <translation>{0}前</translation>
    </message>
    <message>
        <source>+{0}</source>
        <translation>+{0}</translation>
    </message>
    <message>
        <source>{0} s</source>
        <translation>{0} 秒</translation>
    </message>
    <message>
        <source>{0} min</source>
        <translation>{0} 分钟</translation>
    </message>
    <message>
        <source>{0} h</source>
        <translation>{0} 小时</translation>
    </message>
    <message>
        <source>{0} d</source>
        <translation>{0} 天</translation>
    </message>
</context>
<context>
    <name>Closing</name>
    <message>
        <source>A run is active.</source>
        <translation>训练正在进行。</translation>
    </message>
    <message>
        <source>The step under way is finished and a checkpoint is saved, so that it can be taken up again.</source>
        <translation>当前这一步会先完成并保存检查点，以后可以接着训练。</translation>
    </message>
    <message>
        <source>Stop and quit</source>
        <translation>停止并退出</translation>
    </message>
    <message>
        <source>Keep running</source>
        <translation>继续训练</translation>
    </message>
</context>
<context>
    <name>CommandPalette</name>
    <message>
        <source>Search commands</source>
        <translation>搜索命令</translation>
    </message>
    <message>
        <source>Commands found</source>
        <translation>找到的命令</translation>
    </message>
    <message>
        <source>No command has these letters.</source>
        <translation>没有包含这些字的命令。</translation>
    </message>
</context>
<context>
    <name>Commands</name>
    <message>
        <source>Open run file…</source>
        <translation>打开训练配置…</translation>
    </message>
    <message>
        <source>Save run file…</source>
        <translation>保存训练配置…</translation>
    </message>
    <message>
        <source>Open memory snapshot…</source>
        <translation>打开显存快照…</translation>
    </message>
    <message>
        <source>Explain an error…</source>
        <translation>解释报错…</translation>
    </message>
    <message>
        <source>Demonstrations…</source>
        <translation>演示…</translation>
    </message>
    <message>
        <source>Save picture of the window…</source>
        <translation>保存窗口截图…</translation>
    </message>
    <message>
        <source>Open folder of sessions</source>
        <translation>打开会话文件夹</translation>
    </message>
    <message>
        <source>Settings…</source>
        <translation>设置…</translation>
    </message>
    <message>
        <source>Quit</source>
        <translation>退出</translation>
    </message>
    <message>
        <source>Start</source>
        <translation>开始</translation>
    </message>
    <message>
        <source>Pause</source>
        <translation>暂停</translation>
    </message>
    <message>
        <source>Resume</source>
        <translation>继续</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>停止</translation>
    </message>
    <message>
        <source>Stop without saving</source>
        <translation>停止且不保存</translation>
    </message>
    <message>
        <source>Save</source>
        <translation>保存</translation>
    </message>
    <message>
        <source>Save and pause</source>
        <translation>保存并暂停</translation>
    </message>
    <message>
        <source>Use the largest batch that fits</source>
        <translation>改用放得下的最大批量</translation>
    </message>
    <message>
        <source>Shrink the micro-batch</source>
        <translation>缩小微批量</translation>
    </message>
    <message>
        <source>Draw the next step of the run</source>
        <translation>画出训练的下一步</translation>
    </message>
    <message>
        <source>Why this warning</source>
        <translation>为什么告警</translation>
    </message>
    <message>
        <source>Ignore this warning</source>
        <translation>忽略此告警</translation>
    </message>
    <message>
        <source>Copy the setting</source>
        <translation>复制设置</translation>
    </message>
    <message>
        <source>Show what happened</source>
        <translation>查看原因</translation>
    </message>
    <message>
        <source>Resume the interrupted run</source>
        <translation>继续中断的训练</translation>
    </message>
    <message>
        <source>Leave the interrupted run</source>
        <translation>放弃中断的训练</translation>
    </message>
    <message>
        <source>Search commands</source>
        <translation>搜索命令</translation>
    </message>
    <message>
        <source>Menu</source>
        <translation>菜单</translation>
    </message>
    <message>
        <source>Run</source>
        <translation>训练</translation>
    </message>
    <message>
        <source>GPU</source>
        <translation>显卡</translation>
    </message>
    <message>
        <source>Alerts</source>
        <translation>告警</translation>
    </message>
    <message>
        <source>Processes</source>
        <translation>进程</translation>
    </message>
    <message>
        <source>Processes in a window of their own</source>
        <translation>在单独的窗口中显示进程</translation>
    </message>
    <message>
        <source>Copy the table of processes</source>
        <translation>复制进程表</translation>
    </message>
    <message>
        <source>End the chosen process…</source>
        <translation>结束所选进程…</translation>
    </message>
    <message>
        <source>Side panel</source>
        <translation>侧栏</translation>
    </message>
    <message>
        <source>Curves over time</source>
        <translation>随时间的曲线</translation>
    </message>
    <message>
        <source>Memory of one step</source>
        <translation>一步的显存</translation>
    </message>
    <message>
        <source>All fields of the card</source>
        <translation>显卡的全部字段</translation>
    </message>
    <message>
        <source>All cards side by side</source>
        <translation>并排显示所有显卡</translation>
    </message>
    <message>
        <source>Which card lags</source>
        <translation>哪块显卡落后</translation>
    </message>
    <message>
        <source>Search modules</source>
        <translation>搜索模块</translation>
    </message>
    <message>
        <source>Largest blocks</source>
        <translation>最大的内存块</translation>
    </message>
    <message>
        <source>Next card</source>
        <translation>下一块显卡</translation>
    </message>
    <message>
        <source>Go to now</source>
        <translation>回到现在</translation>
    </message>
    <message>
        <source>Show the last minute</source>
        <translation>显示最近 1 分钟</translation>
    </message>
    <message>
        <source>Show the last 5 minutes</source>
        <translation>显示最近 5 分钟</translation>
    </message>
    <message>
        <source>Show the last 15 minutes</source>
        <translation>显示最近 15 分钟</translation>
    </message>
    <message>
        <source>Show everything</source>
        <translation>显示全部</translation>
    </message>
    <message>
        <source>Load as utilisation</source>
        <translation>负载：利用率</translation>
    </message>
    <message>
        <source>Load as activity of SMs and tensor cores</source>
        <translation>负载：SM 与张量核心活跃度</translation>
    </message>
    <message>
        <source>Load as power, share of its limit</source>
        <translation>负载：功耗占上限的比例</translation>
    </message>
    <message>
        <source>Shade what was slowed by heat</source>
        <translation>标出过热降频的时段</translation>
    </message>
    <message>
        <source>Shade what was slowed by the power limit</source>
        <translation>标出受功耗上限降频的时段</translation>
    </message>
    <message>
        <source>Dark theme</source>
        <translation>深色主题</translation>
    </message>
    <message>
        <source>Light theme</source>
        <translation>浅色主题</translation>
    </message>
    <message>
        <source>Show the last hour</source>
        <translation>显示最近 1 小时</translation>
    </message>
    <message>
        <source>Show the process</source>
        <translation>查看该进程</translation>
    </message>
    <message>
        <source>Presentation</source>
        <translation>演示模式</translation>
    </message>
    <message>
        <source>Theme of the system</source>
        <translation>跟随系统主题</translation>
    </message>
    <message>
        <source>About Floodmark</source>
        <translation>关于水位线 Floodmark</translation>
    </message>
    <message>
        <source>File</source>
        <translation>文件</translation>
    </message>
    <message>
        <source>View</source>
        <translation>视图</translation>
    </message>
    <message>
        <source>Help</source>
        <translation>帮助</translation>
    </message>
</context>
<context>
    <name>DemoRow</name>
    <message>
        <source>Start</source>
        <translation>开始</translation>
    </message>
    <message>
        <source>Start: {0}</source>
        <translation>开始：{0}</translation>
    </message>
</context>
<context>
    <name>Demos</name>
    <message>
        <source>A healthy training</source>
        <translation>正常的训练</translation>
    </message>
    <message>
        <source>Cats and dogs. Nothing is wrong, and nothing is said.</source>
        <translation>猫狗分类。一切正常，不会告警。</translation>
    </message>
    <message>
        <source>The passes fit, the state of Adam does not. Said before the call.</source>
        <translation>前向和反向都放得下，Adam 的状态放不下。在调用之前就会提示。</translation>
    </message>
    <message>
        <source>The largest batch comes last</source>
        <translation>最大的批次排在最后</translation>
    </message>
    <message>
        <source>The data are sorted by size; the last batches of the epoch do not fit.</source>
        <translation>数据按大小排序，一轮中最后的批次放不下。</translation>
    </message>
    <message>
        <source>A leak</source>
        <translation>显存泄漏</translation>
    </message>
    <message>
        <source>Every loss is kept with its graph. The warning comes long before the end.</source>
        <translation>每一步的损失连同计算图都被保留。远在用尽之前就会告警。</translation>
    </message>
    <message>
        <source>Memory in small pieces</source>
        <translation>显存碎片</translation>
    </message>
    <message>
        <source>Small tensors stay between large ones: half of the memory is free, and none of it fits.</source>
        <translation>小张量夹在大张量之间：一半显存空闲，却没有一块够用。</translation>
    </message>
    <message>
        <source>Another process</source>
        <translation>其他进程</translation>
    </message>
    <message>
        <source>A second training (simulated) grows on the same card and takes what this run needs again.</source>
        <translation>同一张卡上的另一个训练（模拟）不断增长，占走本次训练还要用的显存。</translation>
    </message>
    <message>
        <source>Validation keeps its outputs</source>
        <translation>验证保留了输出</translation>
    </message>
    <message>
        <source>Predictions are kept with their graph, more with every epoch.</source>
        <translation>预测结果连同计算图被保留，一轮比一轮多。</translation>
    </message>
    <message>
        <source>Copies made for saving</source>
        <translation>保存时的副本</translation>
    </message>
    <message>
        <source>A copy of the weights stays on the card with every checkpoint.</source>
        <translation>每保存一次检查点，显存里就多留一份权重。</translation>
    </message>
    <message>
        <source>Resuming</source>
        <translation>接着训练</translation>
    </message>
    <message>
        <source>The loaded checkpoint stays on the card: a fresh run would fit.</source>
        <translation>读入的检查点留在显存里：从头训练本来放得下。</translation>
    </message>
    <message>
        <source>Memory outside the allocator</source>
        <translation>分配器之外的显存</translation>
    </message>
    <message>
        <source>One more kernel is compiled and loaded in every step; PyTorch does not count it.</source>
        <translation>每一步都多编译并加载一个内核，PyTorch 不统计它。</translation>
    </message>
    <message>
        <source>Main memory</source>
        <translation>内存</translation>
    </message>
    <message>
        <source>The loader keeps every decoded picture in the RAM of a simulated small computer.</source>
        <translation>数据加载器把解码后的图片全部留在（模拟的小电脑的）内存里。</translation>
    </message>
    <message>
        <source>Spilling under Windows</source>
        <translation>Windows 下的显存溢出</translation>
    </message>
    <message>
        <source>The driver moves memory to RAM when the card is full: no error, far slower steps.</source>
        <translation>显存满了以后驱动改用内存：不报错，但每步慢得多。</translation>
    </message>
    <message>
        <source>The first optimizer step</source>
        <translation>第一次优化器更新</translation>
    </message>
    <message>
        <source>Too big from the start</source>
        <translation>一开始就放不下</translation>
    </message>
    <message>
        <source>The estimate says so before the first step, with the batch that fits.</source>
        <translation>第一步之前估计就会指出，并给出放得下的批量。</translation>
    </message>
</context>
<context>
    <name>DemosDialog</name>
    <message>
        <source>A run is active. Stop it, then a demonstration can be started.</source>
        <translation>训练正在进行。先停止它，才能开始演示。</translation>
    </message>
    <message>
        <source>Real trainings on small data, on a simulated card where there is no other. Each shows one thing.</source>
        <translation>小数据上的真实训练；没有显卡时用模拟显卡。每个演示说明一件事。</translation>
    </message>
    <message>
        <source>Demonstrations</source>
        <translation>演示</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>关闭</translation>
    </message>
</context>
<context>
    <name>Errors</name>
    <message>
        <source>A setting has a value it does not take.</source>
        <translation>有一项设置的值不被接受。</translation>
    </message>
    <message>
        <source>The run file is not well-formed.</source>
        <translation>训练配置文件格式有误。</translation>
    </message>
    <message>
        <source>A setting is out of its range.</source>
        <translation>有一项设置超出范围。</translation>
    </message>
    <message>
        <source>A setting has the wrong kind of value.</source>
        <translation>有一项设置的值类型不对。</translation>
    </message>
    <message>
        <source>The run file has a setting that does not exist.</source>
        <translation>训练配置文件里有不存在的设置项。</translation>
    </message>
    <message>
        <source>The run file cannot be read.</source>
        <translation>无法读取训练配置文件。</translation>
    </message>
    <message>
        <source>The checkpoint is damaged.</source>
        <translation>检查点已损坏。</translation>
    </message>
    <message>
        <source>The checkpoint cannot be written.</source>
        <translation>无法写入检查点。</translation>
    </message>
    <message>
        <source>The file is no checkpoint of Floodmark.</source>
        <translation>这个文件不是水位线的检查点。</translation>
    </message>
    <message>
        <source>The checkpoint does not exist.</source>
        <translation>检查点不存在。</translation>
    </message>
    <message>
        <source>The checkpoint comes from another version of Floodmark.</source>
        <translation>检查点来自另一个版本的水位线。</translation>
    </message>
    <message>
        <source>A class has too few pictures for validation.</source>
        <translation>某个类别的图片太少，无法划分验证集。</translation>
    </message>
    <message>
        <source>The built-in data set is damaged.</source>
        <translation>内置数据集已损坏。</translation>
    </message>
    <message>
        <source>A class has no readable picture.</source>
        <translation>某个类别没有可读取的图片。</translation>
    </message>
    <message>
        <source>There are fewer pictures than one batch takes.</source>
        <translation>图片数量不足一个批次。</translation>
    </message>
    <message>
        <source>A picture changed while it was read.</source>
        <translation>读取过程中有图片被改动。</translation>
    </message>
    <message>
        <source>The data folder does not exist.</source>
        <translation>数据文件夹不存在。</translation>
    </message>
    <message>
        <source>The package with the built-in data set is missing.</source>
        <translation>缺少内置数据集的软件包。</translation>
    </message>
    <message>
        <source>The data folder has no class folders.</source>
        <translation>数据文件夹里没有类别子文件夹。</translation>
    </message>
    <message>
        <source>The data folder may not be read.</source>
        <translation>没有读取数据文件夹的权限。</translation>
    </message>
    <message>
        <source>The data are not a folder.</source>
        <translation>数据路径不是文件夹。</translation>
    </message>
    <message>
        <source>A class has only one image; it needs at least two.</source>
        <translation>某个类别只有一张图片，至少需要两张。</translation>
    </message>
    <message>
        <source>The data have one class only; a classifier needs two.</source>
        <translation>数据只有一个类别，分类至少需要两个。</translation>
    </message>
    <message>
        <source>The pictures of a class are all copies of one another.</source>
        <translation>某个类别的图片全是重复的。</translation>
    </message>
    <message>
        <source>Some files cannot be read and are left out.</source>
        <translation>有些文件无法读取，已跳过。</translation>
    </message>
    <message>
        <source>A picture cannot be read.</source>
        <translation>有图片无法读取。</translation>
    </message>
    <message>
        <source>The data folder cannot be read.</source>
        <translation>无法读取数据文件夹。</translation>
    </message>
    <message>
        <source>The disk with the data folder is full.</source>
        <translation>数据文件夹所在的磁盘已满。</translation>
    </message>
    <message>
        <source>The data folder cannot be written to.</source>
        <translation>无法写入数据文件夹。</translation>
    </message>
    <message>
        <source>There is not enough main memory for this demonstration.</source>
        <translation>内存不足，无法运行此演示。</translation>
    </message>
    <message>
        <source>There is no such demonstration.</source>
        <translation>没有这个演示。</translation>
    </message>
    <message>
        <source>The name fits several cards.</source>
        <translation>有多块显卡符合这个名称。</translation>
    </message>
    <message>
        <source>The memory of this card is not known.</source>
        <translation>这块显卡的显存大小未知。</translation>
    </message>
    <message>
        <source>There is no card of this name in the catalogue.</source>
        <translation>目录中没有这个名称的显卡。</translation>
    </message>
    <message>
        <source>There is no card with this number.</source>
        <translation>没有这个编号的显卡。</translation>
    </message>
    <message>
        <source>The GPU driver does not answer.</source>
        <translation>显卡驱动没有响应。</translation>
    </message>
    <message>
        <source>The installed torch cannot use the card.</source>
        <translation>所装的 torch 无法使用这块显卡。</translation>
    </message>
    <message>
        <source>Runs need an NVIDIA card or a simulated one.</source>
        <translation>训练需要 NVIDIA 显卡或模拟显卡。</translation>
    </message>
    <message>
        <source>The cards of this machine are not known yet.</source>
        <translation>还不知道本机有哪些显卡。</translation>
    </message>
    <message>
        <source>The model cannot be traced.</source>
        <translation>无法追踪这个模型。</translation>
    </message>
    <message>
        <source>Metrics are served to whoever can reach this machine.</source>
        <translation>凡能访问本机者都可读取指标。</translation>
    </message>
    <message>
        <source>Metrics are served for Prometheus, to this machine alone.</source>
        <translation>正在为 Prometheus 提供指标，仅限本机访问。</translation>
    </message>
    <message>
        <source>Nothing more is recorded: the disk is full.</source>
        <translation>磁盘已满，记录已停止。</translation>
    </message>
    <message>
        <source>The session cannot be recorded at the moment.</source>
        <translation>暂时无法记录会话。</translation>
    </message>
    <message>
        <source>The report cannot be written.</source>
        <translation>无法写入报告。</translation>
    </message>
    <message>
        <source>A run is under way already.</source>
        <translation>已有训练正在进行。</translation>
    </message>
    <message>
        <source>The interrupted run cannot be resumed.</source>
        <translation>无法继续中断的训练。</translation>
    </message>
    <message>
        <source>The training has ended unexpectedly.</source>
        <translation>训练意外结束。</translation>
    </message>
    <message>
        <source>The picture cannot be written.</source>
        <translation>无法写入截图。</translation>
    </message>
    <message>
        <source>The memory snapshot is damaged.</source>
        <translation>显存快照已损坏。</translation>
    </message>
    <message>
        <source>The file is no memory snapshot.</source>
        <translation>这个文件不是显存快照。</translation>
    </message>
    <message>
        <source>The memory snapshot holds more than plain data.</source>
        <translation>显存快照里不只是普通数据。</translation>
    </message>
    <message>
        <source>The memory snapshot is too large.</source>
        <translation>显存快照太大。</translation>
    </message>
    <message>
        <source>The memory snapshot cannot be read.</source>
        <translation>无法读取显存快照。</translation>
    </message>
    <message>
        <source>No NVIDIA card can be used; a simulated one stands in.</source>
        <translation>没有可用的 NVIDIA 显卡，暂用模拟显卡。</translation>
    </message>
    <message>
        <source>There is no such Python to trace with.</source>
        <translation>没有可用来追踪的这个 Python。</translation>
    </message>
    <message>
        <source>What should trace is no Python.</source>
        <translation>用来追踪的不是 Python。</translation>
    </message>
    <message>
        <source>The Python that traces is too old.</source>
        <translation>用来追踪的 Python 版本太旧。</translation>
    </message>
    <message>
        <source>The Python that traces has no torch.</source>
        <translation>用来追踪的 Python 没有 torch。</translation>
    </message>
    <message>
        <source>The torch that traces is too old.</source>
        <translation>用来追踪的 torch 版本太旧。</translation>
    </message>
    <message>
        <source>A setting does not go with the model.</source>
        <translation>有一项设置与模型不相配。</translation>
    </message>
    <message>
        <source>The model cannot be built.</source>
        <translation>无法构建模型。</translation>
    </message>
    <message>
        <source>The file with the model has a syntax error.</source>
        <translation>模型文件有语法错误。</translation>
    </message>
    <message>
        <source>The file with the model has no such function.</source>
        <translation>模型文件里没有这个函数。</translation>
    </message>
    <message>
        <source>There is no model of this name.</source>
        <translation>没有这个名称的模型。</translation>
    </message>
    <message>
        <source>There is no optimizer of this name.</source>
        <translation>没有这个名称的优化器。</translation>
    </message>
    <message>
        <source>A package that the model needs is not installed.</source>
        <translation>模型需要的软件包没有安装。</translation>
    </message>
    <message>
        <source>Built-in recipes are traced by the program&apos;s own Python.</source>
        <translation>内置方案只能由程序自带的 Python 追踪。</translation>
    </message>
    <message>
        <source>The model asks for values that a trace does not have.</source>
        <translation>模型要用到追踪时没有的数值。</translation>
    </message>
    <message>
        <source>The trace was interrupted.</source>
        <translation>追踪被中断。</translation>
    </message>
    <message>
        <source>The estimate was given up for a newer one.</source>
        <translation>这次估计已被更新的估计取代。</translation>
    </message>
    <message>
        <source>The process that traces was killed.</source>
        <translation>追踪进程被终止。</translation>
    </message>
    <message>
        <source>The process that traces ended by itself.</source>
        <translation>追踪进程自行退出。</translation>
    </message>
    <message>
        <source>The trace took too long.</source>
        <translation>追踪用时过长。</translation>
    </message>
    <message>
        <source>The trace needed too much main memory.</source>
        <translation>追踪占用的内存过多。</translation>
    </message>
    <message>
        <source>There is no room on the disk for the trace.</source>
        <translation>磁盘空间不足，无法追踪。</translation>
    </message>
    <message>
        <source>The trace has failed.</source>
        <translation>追踪失败。</translation>
    </message>
    <message>
        <source>The computer&apos;s own memory is full, not the card&apos;s.</source>
        <translation>是电脑的内存满了，不是显存。</translation>
    </message>
    <message>
        <source>The loss is no longer a finite number.</source>
        <translation>损失已不是有限的数值。</translation>
    </message>
    <message>
        <source>Something in the window went wrong; the run is not affected.</source>
        <translation>窗口出现问题，训练不受影响。</translation>
    </message>
    <message>
        <source>damaged</source>
        <translation>已损坏</translation>
    </message>
    <message>
        <source>empty file</source>
        <translation>空文件</translation>
    </message>
    <message>
        <source>missing</source>
        <translation>不存在</translation>
    </message>
    <message>
        <source>no permission</source>
        <translation>无权限</translation>
    </message>
    <message>
        <source>not a file</source>
        <translation>不是文件</translation>
    </message>
    <message>
        <source>not an image</source>
        <translation>不是图片</translation>
    </message>
    <message>
        <source>too large</source>
        <translation>过大</translation>
    </message>
    <message>
        <source>ends too early</source>
        <translation>文件不完整</translation>
    </message>
    <message>
        <source>unreadable</source>
        <translation>无法读取</translation>
    </message>
    <message>
        <source>1 file cannot be read and is left out: {0} ({1}).</source>
        <translation>1 个文件无法读取，已跳过：{0}（{1}）。</translation>
    </message>
    <message>
        <source>{0} files cannot be read and are left out; the first: {1} ({2}). The log names all of them.</source>
        <translation>{0} 个文件无法读取，已跳过；第一个：{1}（{2}）。日志列出全部。</translation>
    </message>
</context>
<context>
    <name>EstimateCard</name>
    <message>
        <source>Use {0}</source>
        <translation>改用 {0}</translation>
    </message>
    <message>
        <source>Show where it goes</source>
        <translation>看看用在哪里</translation>
    </message>
    <message>
        <source>Use the largest batch that fits</source>
        <translation>采用放得下的最大批量</translation>
    </message>
</context>
<context>
    <name>ExplainDialog</name>
    <message>
        <source>{0} cannot be read: {1}</source>
        <translation>无法读取 {0}：{1}</translation>
    </message>
    <message>
        <source>{0}, {1}.</source>
        <translation>{0}，{1}。</translation>
    </message>
    <message>
        <source>No out-of-memory message is in this text</source>
        <translation>这段文字里没有显存不足的报错</translation>
    </message>
    <message>
        <source>Looked for are the messages of PyTorch for CUDA, ROCm, XPU, NPU and MPS, of cuBLAS and cuDNN, and of main memory. Paste the last lines of the error, from &apos;out of memory&apos; on.</source>
        <translation>可识别 PyTorch 在 CUDA、ROCm、XPU、NPU 和 MPS 上的报错，cuBLAS 与 cuDNN 的报错，以及内存不足的报错。请粘贴报错的最后几行，从“out of memory”开始。</translation>
    </message>
    <message>
        <source>Whose memory it was</source>
        <translation>显存被谁占用</translation>
    </message>
    <message>
        <source>What to change</source>
        <translation>怎么改</translation>
    </message>
    <message>
        <source>Copy</source>
        <translation>复制</translation>
    </message>
    <message>
        <source>Open a log</source>
        <translation>打开日志</translation>
    </message>
    <message>
        <source>{0} characters; the end is shown.</source>
        <translation>共 {0} 个字符，只显示末尾。</translation>
    </message>
    <message>
        <source>Explain an error</source>
        <translation>解释报错</translation>
    </message>
    <message>
        <source>Paste an out-of-memory error or drop a log: of PyTorch on any card, in any version.</source>
        <translation>粘贴显存不足的报错，或拖入日志：任何显卡、任何版本的 PyTorch 都可以。</translation>
    </message>
    <message>
        <source>Error message</source>
        <translation>报错信息</translation>
    </message>
    <message>
        <source>Clear</source>
        <translation>清空</translation>
    </message>
    <message>
        <source>Open a log…</source>
        <translation>打开日志…</translation>
    </message>
    <message>
        <source>Copy the answer</source>
        <translation>复制结果</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>关闭</translation>
    </message>
</context>
<context>
    <name>FieldHelp</name>
    <message>
        <source>The share of time in which at least one kernel ran, not how much of the card it used: a kernel on one SM of a hundred counts in full. SM activity, and power against its limit, say more.</source>
        <translation>至少有一个内核在运行的时间占比，而不是显卡用了多少：一百个 SM 里只占一个的内核也算满。SM 活跃度和功耗占上限的比例更能说明问题。</translation>
    </message>
    <message>
        <source>How many SMs had work, over all SMs and all of the time. Below 80 % a card has room for larger batches.</source>
        <translation>有任务的 SM 占比，对全部 SM 和时间取平均。低于 80 % 说明显卡还容得下更大的批量。</translation>
    </message>
    <message>
        <source>How many of the warps that the SMs can hold were there. A low value is no fault by itself.</source>
        <translation>SM 可容纳的线程束中实际驻留的比例。数值低本身并不是问题。</translation>
    </message>
    <message>
        <source>The share of time in which the tensor cores worked. Zero in a training means that it computes in FP32 without TF32.</source>
        <translation>张量核心工作的时间占比。训练时为零，说明在以 FP32 计算且未启用 TF32。</translation>
    </message>
    <message>
        <source>The share of time in which the memory moved data. Near 80 % the memory is what limits.</source>
        <translation>显存传输数据的时间占比。接近 80 % 时，瓶颈就是显存。</translation>
    </message>
    <message>
        <source>The share of time in which memory was read or written. It does not say how full it is.</source>
        <translation>读写显存的时间占比。它不表示显存占了多少。</translation>
    </message>
    <message>
        <source>What all processes together have taken, with what their allocators keep for later.</source>
        <translation>所有进程合计占用的显存，包括其分配器留作后用的部分。</translation>
    </message>
    <message>
        <source>What the driver keeps for itself. It is not part of what can be filled.</source>
        <translation>驱动自留的部分，不属于可用容量。</translation>
    </message>
    <message>
        <source>The window through which the processor and other cards reach this card&apos;s memory.</source>
        <translation>处理器和其他显卡访问本卡显存的窗口。</translation>
    </message>
    <message>
        <source>Power at this moment, as the driver measures it.</source>
        <translation>驱动测得的瞬时功耗。</translation>
    </message>
    <message>
        <source>What the card may draw. At its limit it lowers its clocks until it is below.</source>
        <translation>显卡允许的功耗。达到上限时会降低频率，直到回落。</translation>
    </message>
    <message>
        <source>Since this session began.</source>
        <translation>自本次会话开始。</translation>
    </message>
    <message>
        <source>How many degrees are left before the card slows down; 0 is at the limit.</source>
        <translation>距显卡降频还有多少度；0 表示已到上限。</translation>
    </message>
    <message>
        <source>P0 is the fastest, P15 the slowest. Idle cards rest at P8 or above.</source>
        <translation>P0 最快，P15 最慢。空闲的显卡处于 P8 或更高编号。</translation>
    </message>
    <message>
        <source>What keeps the clocks from being higher at this moment, as the driver says.</source>
        <translation>驱动给出的、此刻限制频率的原因。</translation>
    </message>
    <message>
        <source>The share of time in which the power limit kept the clocks lower.</source>
        <translation>因功耗上限而压低频率的时间占比。</translation>
    </message>
    <message>
        <source>The share of time in which heat kept the clocks lower. Look at fans, dust and the air around it.</source>
        <translation>因过热而压低频率的时间占比。请检查风扇、积灰和周围通风。</translation>
    </message>
    <message>
        <source>The share of time in which the card waited for the clocks of its sync boost group.</source>
        <translation>因同步加速组而受限的时间占比。</translation>
    </message>
    <message>
        <source>The share of time in which the clocks were lower because there was little to do.</source>
        <translation>因任务少而降低频率的时间占比。</translation>
    </message>
    <message>
        <source>An idle card lowers it to save power; judge it while the card works.</source>
        <translation>空闲的显卡会降低它以省电；请在工作时判断。</translation>
    </message>
    <message>
        <source>Fewer than the card has means a slot with fewer lanes, a riser, or a bad contact.</source>
        <translation>少于显卡自身的通道数，说明插槽通道少、用了延长线，或接触不良。</translation>
    </message>
    <message>
        <source>Packets sent again since the driver was loaded. A number that grows points to the slot or riser.</source>
        <translation>自驱动加载以来重传的数据包。数字持续增长时，请检查插槽或延长线。</translation>
    </message>
    <message>
        <source>Memory errors that were put right since the driver was loaded. Now and then one is normal.</source>
        <translation>自驱动加载以来已纠正的显存错误。偶尔一次属正常。</translation>
    </message>
    <message>
        <source>Memory errors that could not be put right. Results may be wrong, and the process is usually ended.</source>
        <translation>无法纠正的显存错误。结果可能有误，进程通常会被终止。</translation>
    </message>
    <message>
        <source>Rows of memory that were replaced by spare ones after an error.</source>
        <translation>出错后由备用行替换的显存行。</translation>
    </message>
    <message>
        <source>Yes: a row has failed and will be replaced when the card is reset.</source>
        <translation>是：有一行已损坏，显卡复位后替换。</translation>
    </message>
    <message>
        <source>Yes: no spare row is left. The card should be replaced.</source>
        <translation>是：备用行已用尽，应更换显卡。</translation>
    </message>
    <message>
        <source>Pages of memory that are no longer used after errors.</source>
        <translation>出错后不再使用的显存页。</translation>
    </message>
    <message>
        <source>Errors that the driver reported in this session. NVIDIA lists what each number means.</source>
        <translation>本次会话中驱动报告的错误。各编号的含义见 NVIDIA 文档。</translation>
    </message>
    <message>
        <source>Yes: when the memory is full the driver moves some of it to RAM without an error, and the training slows.</source>
        <translation>是：显存满时，驱动会不报错地把一部分移到内存，训练随之变慢。</translation>
    </message>
    <message>
        <source>The driver&apos;s counter misses nothing; power over time leaves gaps out.</source>
        <translation>驱动计数器不会遗漏；功耗积分不含中断的时段。</translation>
    </message>
    <message>
        <source>On: the driver stays loaded while nobody uses the card, so that the next start is quick.</source>
        <translation>开：无人使用显卡时驱动仍保持加载，下次启动更快。</translation>
    </message>
    <message>
        <source>Who may use the card at the same time.</source>
        <translation>谁可以同时使用这块显卡。</translation>
    </message>
</context>
<context>
    <name>Fields</name>
    <message>
        <source>Recipe</source>
        <translation>方案</translation>
    </message>
    <message>
        <source>Name</source>
        <translation>名称</translation>
    </message>
    <message>
        <source>Data</source>
        <translation>数据</translation>
    </message>
    <message>
        <source>Validation share</source>
        <translation>验证集比例</translation>
    </message>
    <message>
        <source>Augment</source>
        <translation>数据增强</translation>
    </message>
    <message>
        <source>Image size</source>
        <translation>图片尺寸</translation>
    </message>
    <message>
        <source>Channels</source>
        <translation>通道</translation>
    </message>
    <message>
        <source>Model</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>Width</source>
        <translation>宽度</translation>
    </message>
    <message>
        <source>Hidden units</source>
        <translation>隐藏单元</translation>
    </message>
    <message>
        <source>Depth</source>
        <translation>深度</translation>
    </message>
    <message>
        <source>Batch</source>
        <translation>批量</translation>
    </message>
    <message>
        <source>Accumulate</source>
        <translation>梯度累积</translation>
    </message>
    <message>
        <source>Epochs</source>
        <translation>轮数</translation>
    </message>
    <message>
        <source>Optimizer</source>
        <translation>优化器</translation>
    </message>
    <message>
        <source>Foreach update</source>
        <translation>foreach 更新</translation>
    </message>
    <message>
        <source>Learning rate</source>
        <translation>学习率</translation>
    </message>
    <message>
        <source>Weight decay</source>
        <translation>权重衰减</translation>
    </message>
    <message>
        <source>Momentum</source>
        <translation>动量</translation>
    </message>
    <message>
        <source>Schedule</source>
        <translation>学习率调度</translation>
    </message>
    <message>
        <source>Schedule epochs</source>
        <translation>调度轮数</translation>
    </message>
    <message>
        <source>Warm-up steps</source>
        <translation>预热步数</translation>
    </message>
    <message>
        <source>Precision</source>
        <translation>精度</translation>
    </message>
    <message>
        <source>Clip gradient</source>
        <translation>梯度裁剪</translation>
    </message>
    <message>
        <source>Early stop</source>
        <translation>早停</translation>
    </message>
    <message>
        <source>Time limit</source>
        <translation>时间上限</translation>
    </message>
    <message>
        <source>Pace</source>
        <translation>限速</translation>
    </message>
    <message>
        <source>Log every</source>
        <translation>记录间隔</translation>
    </message>
    <message>
        <source>Seed</source>
        <translation>随机种子</translation>
    </message>
    <message>
        <source>Device</source>
        <translation>设备</translation>
    </message>
    <message>
        <source>Simulated card</source>
        <translation>模拟显卡</translation>
    </message>
    <message>
        <source>CPU threads</source>
        <translation>CPU 线程</translation>
    </message>
    <message>
        <source>Checkpoints in</source>
        <translation>检查点位置</translation>
    </message>
    <message>
        <source>Checkpoint every</source>
        <translation>检查点间隔</translation>
    </message>
    <message>
        <source>On a warning</source>
        <translation>告警时</translation>
    </message>
    <message>
        <source>Out of memory</source>
        <translation>显存不足时</translation>
    </message>
    <message>
        <source>What is learnt from what.</source>
        <translation>用什么数据学什么。</translation>
    </message>
    <message>
        <source>Shown in lists and titles. Empty: made from model and data.</source>
        <translation>显示在列表和标题中。留空则由模型和数据生成。</translation>
    </message>
    <message>
        <source>A built-in data set or a folder of class folders.</source>
        <translation>内置数据集，或按类别分子文件夹的文件夹。</translation>
    </message>
    <message>
        <source>Share of each class that is kept for validation.</source>
        <translation>每个类别留作验证的比例。</translation>
    </message>
    <message>
        <source>Mirror and shift training images by chance.</source>
        <translation>随机镜像和平移训练图片。</translation>
    </message>
    <message>
        <source>Images are resized to this many pixels square.</source>
        <translation>图片会缩放为此边长（像素）的正方形。</translation>
    </message>
    <message>
        <source>Grey or colour. Automatic: colour as soon as the images have some.</source>
        <translation>灰度或彩色。自动：只要图片有颜色就用彩色。</translation>
    </message>
    <message>
        <source>Network that is trained.</source>
        <translation>要训练的网络。</translation>
    </message>
    <message>
        <source>Channels of the first convolution; deeper ones have 2 and 4 times as many.</source>
        <translation>第一个卷积层的通道数，更深的层为 2 倍和 4 倍。</translation>
    </message>
    <message>
        <source>Units of the hidden layers.</source>
        <translation>隐藏层的单元数。</translation>
    </message>
    <message>
        <source>Hidden layers of the wide MLP.</source>
        <translation>宽 MLP 的隐藏层数。</translation>
    </message>
    <message>
        <source>Samples of one micro-step: what memory sees.</source>
        <translation>一个微步的样本数，决定显存占用。</translation>
    </message>
    <message>
        <source>Micro-steps whose gradients are summed for one optimizer step.</source>
        <translation>累积多少个微步的梯度后更新一次。</translation>
    </message>
    <message>
        <source>Passes over the training data.</source>
        <translation>遍历训练数据的次数。</translation>
    </message>
    <message>
        <source>Update rule.</source>
        <translation>参数更新规则。</translation>
    </message>
    <message>
        <source>Update all tensors at once: faster, with temporaries about as large as the parameters.</source>
        <translation>一次更新所有张量：更快，但临时占用与参数差不多大。</translation>
    </message>
    <message>
        <source>Highest learning rate of the schedule.</source>
        <translation>调度中的最高学习率。</translation>
    </message>
    <message>
        <source>Decay of the weights per step and learning rate.</source>
        <translation>每步按学习率计的权重衰减。</translation>
    </message>
    <message>
        <source>Momentum of SGD. 0 keeps no state.</source>
        <translation>SGD 的动量，0 表示不保存状态。</translation>
    </message>
    <message>
        <source>How the learning rate falls over the run.</source>
        <translation>学习率在训练中如何下降。</translation>
    </message>
    <message>
        <source>Horizon of the schedule. Not set: the whole run.</source>
        <translation>调度覆盖的轮数。未设置：整个训练。</translation>
    </message>
    <message>
        <source>Steps over which the learning rate rises from nought.</source>
        <translation>学习率从零升起所用的步数。</translation>
    </message>
    <message>
        <source>bf16: forward and loss under autocast; weights stay fp32.</source>
        <translation>bf16：前向和损失用自动混合精度，权重仍为 fp32。</translation>
    </message>
    <message>
        <source>Largest norm of the gradient. 0: no clipping.</source>
        <translation>梯度的最大范数，0 表示不裁剪。</translation>
    </message>
    <message>
        <source>Stop after this many epochs without a better accuracy.</source>
        <translation>准确率连续多少轮没有提高就停止。</translation>
    </message>
    <message>
        <source>Finish after this time of training.</source>
        <translation>训练达到此时间后结束。</translation>
    </message>
    <message>
        <source>No more optimizer steps per second than this, for demonstrations.</source>
        <translation>每秒更新步数的上限，用于演示。</translation>
    </message>
    <message>
        <source>Read the loss from the device every so many steps. Not set: five times a second.</source>
        <translation>每隔多少步读取一次损失。未设置：每秒五次。</translation>
    </message>
    <message>
        <source>Everything random follows from it.</source>
        <translation>一切随机数都由它决定。</translation>
    </message>
    <message>
        <source>Where it runs. A simulated card is computed by the CPU.</source>
        <translation>在哪里训练。模拟显卡由 CPU 计算。</translation>
    </message>
    <message>
        <source>Catalogue name of the simulated card, such as GeForce GTX 1660.</source>
        <translation>模拟显卡在目录中的名称，例如 GeForce GTX 1660。</translation>
    </message>
    <message>
        <source>Threads of the training on the CPU. Not set: one core is left free.</source>
        <translation>训练占用的 CPU 线程数。未设置：留出一个核心。</translation>
    </message>
    <message>
        <source>Folder for checkpoints. Not set: the folder of the session.</source>
        <translation>存放检查点的文件夹。未设置：会话文件夹。</translation>
    </message>
    <message>
        <source>Epochs between checkpoints. 0: only on request and on stop.</source>
        <translation>每隔几轮保存检查点。0：仅在要求时和停止时保存。</translation>
    </message>
    <message>
        <source>What to do when memory is forecast to run out. Shrink: smaller micro-batches, and more of them for each step.</source>
        <translation>预测显存不足时怎么办。缩小批量：减小微批量，每步多做几个微步。</translation>
    </message>
    <message>
        <source>shrink the batch</source>
        <translation>缩小批量</translation>
    </message>
    <message>
        <source>What to do when memory has run out. A smaller micro-batch goes on from the last good step.</source>
        <translation>显存不足时怎么办。缩小微批量：从最后一个完好的步继续。</translation>
    </message>
    <message>
        <source>Image folder</source>
        <translation>图片文件夹</translation>
    </message>
    <message>
        <source>cats-dogs (built in)</source>
        <translation>猫狗（内置）</translation>
    </message>
    <message>
        <source>automatic</source>
        <translation>自动</translation>
    </message>
    <message>
        <source>grey</source>
        <translation>灰度</translation>
    </message>
    <message>
        <source>colour</source>
        <translation>彩色</translation>
    </message>
    <message>
        <source>Small CNN</source>
        <translation>小型 CNN</translation>
    </message>
    <message>
        <source>Wide MLP</source>
        <translation>宽 MLP</translation>
    </message>
    <message>
        <source>cosine</source>
        <translation>余弦</translation>
    </message>
    <message>
        <source>constant</source>
        <translation>恒定</translation>
    </message>
    <message>
        <source>linear</source>
        <translation>线性</translation>
    </message>
    <message>
        <source>one cycle</source>
        <translation>单周期</translation>
    </message>
    <message>
        <source>CPU</source>
        <translation>CPU</translation>
    </message>
    <message>
        <source>simulated card</source>
        <translation>模拟显卡</translation>
    </message>
    <message>
        <source>only tell me</source>
        <translation>仅提醒</translation>
    </message>
    <message>
        <source>pause</source>
        <translation>暂停</translation>
    </message>
    <message>
        <source>save</source>
        <translation>保存</translation>
    </message>
    <message>
        <source>save and pause</source>
        <translation>保存并暂停</translation>
    </message>
    <message>
        <source>save and stop</source>
        <translation>保存并停止</translation>
    </message>
    <message>
        <source>end the run</source>
        <translation>结束训练</translation>
    </message>
    <message>
        <source>shrink and go on</source>
        <translation>缩小并继续</translation>
    </message>
    <message>
        <source>Run</source>
        <translation>训练</translation>
    </message>
    <message>
        <source>Training</source>
        <translation>优化</translation>
    </message>
    <message>
        <source>Checkpoints</source>
        <translation>检查点</translation>
    </message>
    <message>
        <source>px</source>
        <translation>像素</translation>
    </message>
    <message>
        <source>s</source>
        <translation>秒</translation>
    </message>
    <message>
        <source>steps</source>
        <translation>步</translation>
    </message>
    <message>
        <source>epochs</source>
        <translation>轮</translation>
    </message>
    <message>
        <source>steps/s</source>
        <translation>步/秒</translation>
    </message>
    <message>
        <source>{0}, batch {1}, {2}</source>
        <translation>{0}，批量 {1}，{2}</translation>
    </message>
    <message>
        <source>not set</source>
        <translation>未设置</translation>
    </message>
    <message>
        <source>{0} takes {1}.</source>
        <translation>{0}应为{1}。</translation>
    </message>
    <message>
        <source>one of {0}</source>
        <translation>以下之一：{0}</translation>
    </message>
    <message>
        <source>a folder</source>
        <translation>文件夹</translation>
    </message>
    <message>
        <source>auto, cpu, simulated, cuda or cuda:N</source>
        <translation>auto、cpu、simulated、cuda 或 cuda:N</translation>
    </message>
    <message>
        <source>plain text</source>
        <translation>普通文本</translation>
    </message>
    <message>
        <source>a whole number</source>
        <translation>整数</translation>
    </message>
    <message>
        <source>a number</source>
        <translation>数字</translation>
    </message>
    <message>
        <source>a whole number from {0} to {1}</source>
        <translation> {0} 到 {1} 的整数</translation>
    </message>
    <message>
        <source>a number from {0} to {1}</source>
        <translation> {0} 到 {1} 的数字</translation>
    </message>
</context>
<context>
    <name>Figures</name>
    <message>
        <source>Growth per step</source>
        <translation>每步增长</translation>
    </message>
    <message>
        <source>Growth per minute</source>
        <translation>每分钟增长</translation>
    </message>
    <message>
        <source>Grown by</source>
        <translation>已增长</translation>
    </message>
    <message>
        <source>over steps</source>
        <translation>经过步数</translation>
    </message>
    <message>
        <source>over</source>
        <translation>历时</translation>
    </message>
    <message>
        <source>of which other programs</source>
        <translation>其中其他程序</translation>
    </message>
    <message>
        <source>Growth at a time</source>
        <translation>每次增长</translation>
    </message>
    <message>
        <source>every so many steps</source>
        <translation>间隔步数</translation>
    </message>
    <message>
        <source>Risen by</source>
        <translation>已上升</translation>
    </message>
    <message>
        <source>Needed</source>
        <translation>需要</translation>
    </message>
    <message>
        <source>Free for it</source>
        <translation>可用</translation>
    </message>
    <message>
        <source>Left before it is full</source>
        <translation>距用尽还剩</translation>
    </message>
    <message>
        <source>Estimated peak</source>
        <translation>估计峰值</translation>
    </message>
    <message>
        <source>Needed at most so far</source>
        <translation>至今最多需要</translation>
    </message>
    <message>
        <source>May be needed at most</source>
        <translation>最多允许</translation>
    </message>
    <message>
        <source>More needed per step</source>
        <translation>每步多需要</translation>
    </message>
    <message>
        <source>for steps</source>
        <translation>持续步数</translation>
    </message>
    <message>
        <source>Largest batch at step</source>
        <translation>最大批次在第几步</translation>
    </message>
    <message>
        <source>Checkpoints that still fit</source>
        <translation>还能保存的检查点</translation>
    </message>
    <message>
        <source>Validations that still fit</source>
        <translation>还能进行的验证</translation>
    </message>
    <message>
        <source>Epochs that still fit</source>
        <translation>还能进行的轮数</translation>
    </message>
    <message>
        <source>More than expected</source>
        <translation>超出预期</translation>
    </message>
    <message>
        <source>Needed the last time</source>
        <translation>上次需要</translation>
    </message>
    <message>
        <source>Needed by a training step</source>
        <translation>训练一步需要</translation>
    </message>
    <message>
        <source>Growth until then</source>
        <translation>届时增长</translation>
    </message>
    <message>
        <source>Size of the checkpoint</source>
        <translation>检查点大小</translation>
    </message>
    <message>
        <source>Growth per batch</source>
        <translation>每批次增长</translation>
    </message>
    <message>
        <source>Batches done</source>
        <translation>已完成批次</translation>
    </message>
    <message>
        <source>Batches to come</source>
        <translation>剩余批次</translation>
    </message>
    <message>
        <source>Steps to the validation</source>
        <translation>距验证步数</translation>
    </message>
    <message>
        <source>Steps to the checkpoint</source>
        <translation>距保存步数</translation>
    </message>
    <message>
        <source>Samples in the batch</source>
        <translation>批次样本数</translation>
    </message>
    <message>
        <source>Tokens in the batch</source>
        <translation>批次词元数</translation>
    </message>
    <message>
        <source>Pixels in the batch</source>
        <translation>批次像素数</translation>
    </message>
    <message>
        <source>Slower by a factor of</source>
        <translation>变慢倍数</translation>
    </message>
    <message>
        <source>Slow steps in a row</source>
        <translation>连续慢步数</translation>
    </message>
    <message>
        <source>A usual step takes</source>
        <translation>平常每步耗时</translation>
    </message>
    <message>
        <source>Live after a step</source>
        <translation>每步之后的活跃显存</translation>
    </message>
    <message>
        <source>Live</source>
        <translation>活跃</translation>
    </message>
    <message>
        <source>Live at the peak</source>
        <translation>峰值时活跃</translation>
    </message>
    <message>
        <source>Held by the allocator</source>
        <translation>分配器占用</translation>
    </message>
    <message>
        <source>Idle in pieces</source>
        <translation>空闲碎片</translation>
    </message>
    <message>
        <source>Outside the allocator</source>
        <translation>分配器之外</translation>
    </message>
    <message>
        <source>Other processes</source>
        <translation>其他进程</translation>
    </message>
    <message>
        <source>Process</source>
        <translation>进程</translation>
    </message>
    <message>
        <source>Loader workers</source>
        <translation>加载进程数</translation>
    </message>
    <message>
        <source>Memory of loader workers</source>
        <translation>加载进程占用内存</translation>
    </message>
    <message>
        <source>Memory of this program</source>
        <translation>本程序占用内存</translation>
    </message>
    <message>
        <source>Main memory that is free</source>
        <translation>空闲内存</translation>
    </message>
    <message>
        <source>Main memory in use</source>
        <translation>已用内存</translation>
    </message>
    <message>
        <source>Main memory</source>
        <translation>内存</translation>
    </message>
    <message>
        <source>In use on the card</source>
        <translation>显卡已用</translation>
    </message>
    <message>
        <source>Capacity of the card</source>
        <translation>显卡容量</translation>
    </message>
    <message>
        <source>Seen since step</source>
        <translation>起始步</translation>
    </message>
    <message>
        <source>Probability in the next step</source>
        <translation>下一步的概率</translation>
    </message>
    <message>
        <source>within 10 steps</source>
        <translation>10 步之内</translation>
    </message>
    <message>
        <source>within 100 steps</source>
        <translation>100 步之内</translation>
    </message>
    <message>
        <source>in this epoch</source>
        <translation>本轮之内</translation>
    </message>
    <message>
        <source>in this run</source>
        <translation>整个训练</translation>
    </message>
    <message>
        <source>Probability: {0} in this run.</source>
        <translation>整个训练的概率：{0}。</translation>
    </message>
    <message>
        <source>Probability: {0} in this epoch, {1} in this run.</source>
        <translation>概率：本轮 {0}，整个训练 {1}。</translation>
    </message>
</context>
<context>
    <name>Files</name>
    <message>
        <source>Open run file</source>
        <translation>打开训练配置</translation>
    </message>
    <message>
        <source>Run files (*.toml)</source>
        <translation>训练配置 (*.toml)</translation>
    </message>
    <message>
        <source>Open memory snapshot</source>
        <translation>打开显存快照</translation>
    </message>
    <message>
        <source>Memory snapshots (*.pickle *.pkl)</source>
        <translation>显存快照 (*.pickle *.pkl)</translation>
    </message>
    <message>
        <source>Save run file</source>
        <translation>保存训练配置</translation>
    </message>
    <message>
        <source>Save picture of the window</source>
        <translation>保存窗口截图</translation>
    </message>
    <message>
        <source>Pictures (*.png)</source>
        <translation>图片 (*.png)</translation>
    </message>
    <message>
        <source>The folder cannot be opened from here: {0}</source>
        <translation>无法从这里打开文件夹：{0}</translation>
    </message>
    <message>
        <source>A field of the form is not valid yet; it is marked.</source>
        <translation>表单中还有无效的项，已标出。</translation>
    </message>
    <message>
        <source>The picture cannot be written to {0}.</source>
        <translation>无法把截图写入 {0}。</translation>
    </message>
    <message>
        <source>{0} cannot be written: {1}</source>
        <translation>无法写入 {0}：{1}</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>关闭</translation>
    </message>
</context>
<context>
    <name>Gpu</name>
    <message>
        <source>Activity</source>
        <translation>活动</translation>
    </message>
    <message>
        <source>Memory</source>
        <translation>显存</translation>
    </message>
    <message>
        <source>Power and energy</source>
        <translation>功耗与能耗</translation>
    </message>
    <message>
        <source>Temperatures and fan</source>
        <translation>温度与风扇</translation>
    </message>
    <message>
        <source>Clocks</source>
        <translation>频率</translation>
    </message>
    <message>
        <source>Throttling</source>
        <translation>降频</translation>
    </message>
    <message>
        <source>PCIe and NVLink</source>
        <translation>PCIe 与 NVLink</translation>
    </message>
    <message>
        <source>Health</source>
        <translation>健康</translation>
    </message>
    <message>
        <source>Modes</source>
        <translation>模式</translation>
    </message>
    <message>
        <source>Identity</source>
        <translation>标识</translation>
    </message>
    <message>
        <source>MIG instances</source>
        <translation>MIG 实例</translation>
    </message>
    <message>
        <source>GPU</source>
        <translation>显卡</translation>
    </message>
    <message>
        <source>Fields</source>
        <translation>字段</translation>
    </message>
    <message>
        <source>Cards</source>
        <translation>全部显卡</translation>
    </message>
    <message>
        <source>Comparison</source>
        <translation>比较</translation>
    </message>
    <message>
        <source>Parts of the GPU page</source>
        <translation>GPU 页的各部分</translation>
    </message>
    <message>
        <source>Card on show</source>
        <translation>当前显示的显卡</translation>
    </message>
    <message>
        <source>Search fields</source>
        <translation>搜索字段</translation>
    </message>
    <message>
        <source>Fields of the card</source>
        <translation>显卡的字段</translation>
    </message>
    <message>
        <source>Only what is there</source>
        <translation>只看有值的</translation>
    </message>
    <message>
        <source>Leave out what this card does not report</source>
        <translation>隐藏这块显卡不报告的字段</translation>
    </message>
    <message>
        <source>Copy all</source>
        <translation>全部复制</translation>
    </message>
    <message>
        <source>Copy the rows on show as text; Ctrl+C copies the chosen one</source>
        <translation>以文本复制所显示的行；Ctrl+C 复制所选的一行</translation>
    </message>
    <message>
        <source>No field has “{0}” in it.</source>
        <translation>没有包含“{0}”的字段。</translation>
    </message>
    <message>
        <source>{0} of {1} reported</source>
        <translation>已报告 {0} / {1}</translation>
    </message>
    <message>
        <source>Xid errors</source>
        <translation>Xid 错误</translation>
    </message>
    <message>
        <source>none</source>
        <translation>无</translation>
    </message>
    <message>
        <source>{0} · last {1}</source>
        <translation>{0} · 最近 {1}</translation>
    </message>
    <message>
        <source>instance</source>
        <translation>实例</translation>
    </message>
    <message>
        <source>{0} of {1}</source>
        <translation>{0} / {1}</translation>
    </message>
    <message>
        <source>History of {0}</source>
        <translation>{0} 的历史</translation>
    </message>
    <message>
        <source>Choose a field to see its history</source>
        <translation>选择一个字段查看其历史</translation>
    </message>
    <message>
        <source>It does not change, so it has no history.</source>
        <translation>它不会变化，因此没有历史。</translation>
    </message>
    <message>
        <source>Nothing was measured in this span</source>
        <translation>这段时间内没有测量值</translation>
    </message>
    <message>
        <source>lowest</source>
        <translation>最低</translation>
    </message>
    <message>
        <source>mean</source>
        <translation>平均</translation>
    </message>
    <message>
        <source>highest</source>
        <translation>最高</translation>
    </message>
    <message>
        <source>change</source>
        <translation>变化</translation>
    </message>
    <message>
        <source>≈ {0}</source>
        <translation>≈ {0}</translation>
    </message>
    <message>
        <source>GPU {0}</source>
        <translation>GPU {0}</translation>
    </message>
    <message>
        <source>torch {0} · {1}</source>
        <translation>torch {0} · {1}</translation>
    </message>
    <message>
        <source>Util</source>
        <translation>利用率</translation>
    </message>
    <message>
        <source>VRAM</source>
        <translation>显存</translation>
    </message>
    <message>
        <source>Power</source>
        <translation>功耗</translation>
    </message>
    <message>
        <source>Temp</source>
        <translation>温度</translation>
    </message>
    <message>
        <source>{0} / {1}</source>
        <translation>{0} / {1}</translation>
    </message>
    <message>
        <source>slowed by heat</source>
        <translation>过热降频</translation>
    </message>
    <message>
        <source>at its power limit</source>
        <translation>已达功耗上限</translation>
    </message>
    <message>
        <source>{0} · last seen {1}</source>
        <translation>{0} · 上次读到 {1}</translation>
    </message>
    <message>
        <source>simulated</source>
        <translation>模拟</translation>
    </message>
</context>
<context>
    <name>GpuPanel</name>
    <message>
        <source>Cards</source>
        <translation>显卡列表</translation>
    </message>
    <message>
        <source>Now</source>
        <translation>当前读数</translation>
    </message>
    <message>
        <source>The card</source>
        <translation>显卡信息</translation>
    </message>
    <message>
        <source>All fields and their history</source>
        <translation>全部字段及其历史</translation>
    </message>
</context>
<context>
    <name>Header</name>
    <message>
        <source>Floodmark</source>
        <translation>水位线 Floodmark</translation>
    </message>
    <message>
        <source>simulated</source>
        <translation>模拟</translation>
    </message>
</context>
<context>
    <name>LeverList</name>
    <message>
        <source>What would help</source>
        <translation>怎样省显存</translation>
    </message>
</context>
<context>
    <name>LeverRow</name>
    <message>
        <source>Copy</source>
        <translation>复制</translation>
    </message>
</context>
<context>
    <name>Levers</name>
    <message>
        <source>bfloat16 autocast</source>
        <translation>bfloat16 混合精度</translation>
    </message>
    <message>
        <source>SGD in place of {optimizer}</source>
        <translation>用 SGD 代替 {optimizer}</translation>
    </message>
    <message>
        <source>Update without foreach</source>
        <translation>不用 foreach 更新</translation>
    </message>
    <message>
        <source>Smaller batch, accumulate</source>
        <translation>减小批量，累积梯度</translation>
    </message>
    <message>
        <source>float16 autocast with a scaler</source>
        <translation>float16 自动混合精度加损失缩放</translation>
    </message>
    <message>
        <source>All of it in bfloat16, weights too</source>
        <translation>权重在内全部用 bfloat16</translation>
    </message>
    <message>
        <source>Checkpoint every block</source>
        <translation>每个块都做激活检查点</translation>
    </message>
    <message>
        <source>Checkpoint every second block</source>
        <translation>每两个块做一个激活检查点</translation>
    </message>
    <message>
        <source>Checkpoint every third block</source>
        <translation>每三个块做一个激活检查点</translation>
    </message>
    <message>
        <source>Checkpoint every fourth block</source>
        <translation>每四个块做一个激活检查点</translation>
    </message>
    <message>
        <source>Fused {optimizer}</source>
        <translation>融合的 {optimizer}</translation>
    </message>
    <message>
        <source>{optimizer} with 8-bit state</source>
        <translation>8 位状态的 {optimizer}</translation>
    </message>
    <message>
        <source>Adafactor in place of {optimizer}</source>
        <translation>用 Adafactor 代替 {optimizer}</translation>
    </message>
    <message>
        <source>Train the head only</source>
        <translation>只训练输出头</translation>
    </message>
    <message>
        <source>LoRA of rank {rank}</source>
        <translation>秩为 {rank} 的 LoRA</translation>
    </message>
    <message>
        <source>Clear gradients to None</source>
        <translation>梯度清为 None</translation>
    </message>
    <message>
        <source>Flash attention</source>
        <translation>Flash 注意力</translation>
    </message>
    <message>
        <source>Memory-efficient attention</source>
        <translation>省显存的注意力</translation>
    </message>
    <message>
        <source>Channels last</source>
        <translation>通道在后的格式</translation>
    </message>
    <message>
        <source>Expandable segments</source>
        <translation>可扩展的段</translation>
    </message>
    <message>
        <source>Optimizer state over {cards} cards (ZeRO-1)</source>
        <translation>优化器状态分到 {cards} 张卡（ZeRO-1）</translation>
    </message>
    <message>
        <source>Gradients too over {cards} cards (ZeRO-2)</source>
        <translation>梯度也分到 {cards} 张卡（ZeRO-2）</translation>
    </message>
    <message>
        <source>Everything over {cards} cards (FSDP)</source>
        <translation>全部分到 {cards} 张卡（FSDP）</translation>
    </message>
    <message>
        <source>Batch {0} → {1}, accumulate</source>
        <translation>批量 {0} → {1}，累积</translation>
    </message>
    <message>
        <source>on</source>
        <translation>开</translation>
    </message>
    <message>
        <source>off</source>
        <translation>关</translation>
    </message>
    <message>
        <source>peak {0}</source>
        <translation>峰值 {0}</translation>
    </message>
    <message>
        <source>peak {0}, then it fits</source>
        <translation>峰值 {0}，放得下</translation>
    </message>
    <message>
        <source>peak {0}, then it is tight</source>
        <translation>峰值 {0}，很紧</translation>
    </message>
    <message>
        <source>peak {0}, still too much</source>
        <translation>峰值 {0}，仍然太多</translation>
    </message>
    <message>
        <source>None stops a leak. It only moves the day.</source>
        <translation>这些都止不住泄漏，只能推迟。</translation>
    </message>
    <message>
        <source>Can be chosen when the run has ended.</source>
        <translation>训练结束后可选用。</translation>
    </message>
    <message>
        <source>{0}: the peak would be {1}. Shows what to write.</source>
        <translation>{0}：峰值将是 {1}。点击查看该怎么写。</translation>
    </message>
    <message>
        <source>{0}: the peak would be {1}. Changes the form.</source>
        <translation>{0}：峰值将为 {1}。点击后写入表单。</translation>
    </message>
    <message>
        <source>Not in this form. In your own code:</source>
        <translation>表单里没有这一项。写在您自己的代码里：</translation>
    </message>
    <message>
        <source>Not in this form. In the environment, before the start:</source>
        <translation>表单里没有这一项。启动前写在环境变量里：</translation>
    </message>
    <message>
        <source>Working out what would help…</source>
        <translation>正在计算哪些办法有用…</translation>
    </message>
    <message>
        <source>Show all {0}</source>
        <translation>显示全部 {0} 项</translation>
    </message>
    <message>
        <source>Show fewer</source>
        <translation>收起</translation>
    </message>
</context>
<context>
    <name>MainWindow</name>
    <message>
        <source>Floodmark</source>
        <translation>水位线 Floodmark</translation>
    </message>
</context>
<context>
    <name>Memory</name>
    <message>
        <source>Largest blocks</source>
        <translation>最大的内存块</translation>
    </message>
    <message>
        <source>Live bytes over one step</source>
        <translation>一步之内的活动显存</translation>
    </message>
    <message>
        <source>Live bytes of the recording</source>
        <translation>快照中的活动显存</translation>
    </message>
    <message>
        <source>traced as CUDA, with a card in sight</source>
        <translation>按 CUDA 追踪，看得到显卡</translation>
    </message>
    <message>
        <source>traced as CUDA</source>
        <translation>按 CUDA 追踪</translation>
    </message>
    <message>
        <source>traced on meta tensors</source>
        <translation>用元张量追踪</translation>
    </message>
    <message>
        <source>by formula: wide</source>
        <translation>按公式估算，范围较宽</translation>
    </message>
    <message>
        <source>not traced</source>
        <translation>没有追踪</translation>
    </message>
    <message>
        <source>attention</source>
        <translation>注意力</translation>
    </message>
    <message>
        <source>optimizer</source>
        <translation>优化器</translation>
    </message>
    <message>
        <source>convolution</source>
        <translation>卷积</translation>
    </message>
    <message>
        <source>{0} cannot be traced without the card.</source>
        <translation>没有显卡就无法追踪 {0}。</translation>
    </message>
    <message>
        <source>It runs, but torch has to give its cache back to the driver again and again.</source>
        <translation>能运行，但 torch 要一再把缓存还给驱动。</translation>
    </message>
    <message>
        <source>Activations are not counted: the true peak is higher.</source>
        <translation>没有计入激活，真实峰值更高。</translation>
    </message>
    <message>
        <source>The stand-in for CUDA crashed; traced on meta tensors instead.</source>
        <translation>CUDA 的替身崩溃了，改用元张量追踪。</translation>
    </message>
    <message>
        <source>Memory of one step</source>
        <translation>一步的显存</translation>
    </message>
    <message>
        <source>Device</source>
        <translation>设备</translation>
    </message>
    <message>
        <source>Reserved</source>
        <translation>已保留</translation>
    </message>
    <message>
        <source>Live</source>
        <translation>活动</translation>
    </message>
    <message>
        <source>What this process takes of the card: torch&apos;s memory and the CUDA context.</source>
        <translation>本进程占用的显存：torch 的显存加上 CUDA 上下文。</translation>
    </message>
    <message>
        <source>What torch&apos;s allocator holds of the card, in use or idle.</source>
        <translation>torch 分配器占有的显存，无论在用还是闲置。</translation>
    </message>
    <message>
        <source>What tensors hold.</source>
        <translation>张量占用的显存。</translation>
    </message>
    <message>
        <source>Peak</source>
        <translation>峰值</translation>
    </message>
    <message>
        <source>As likely to be exceeded as not.</source>
        <translation>超过与不超过的可能各半。</translation>
    </message>
    <message>
        <source>Nine of ten stay below.</source>
        <translation>十次有九次在此之下。</translation>
    </message>
    <message>
        <source>Nineteen of twenty stay below.</source>
        <translation>二十次有十九次在此之下。</translation>
    </message>
    <message>
        <source>Each phase on its own</source>
        <translation>各阶段单独计算</translation>
    </message>
    <message>
        <source>The device&apos;s peak in each phase as if the cache were emptied before it. The peak of the step also holds what earlier phases left in the cache.</source>
        <translation>假设每个阶段开始前缓存已清空时，该阶段的设备显存峰值。整步的峰值还包含先前阶段留在缓存中的显存。</translation>
    </message>
    <message>
        <source>How it was found</source>
        <translation>如何得出</translation>
    </message>
    <message>
        <source>Fits with a probability of more than {0}.</source>
        <translation>放得下的概率超过 {0}。</translation>
    </message>
    <message>
        <source>Fits with a probability of less than {0}.</source>
        <translation>放得下的概率不到 {0}。</translation>
    </message>
    <message>
        <source>Fits with a probability of {0}.</source>
        <translation>放得下的概率为 {0}。</translation>
    </message>
    <message>
        <source>uncertain by {0}</source>
        <translation>本身误差 {0}</translation>
    </message>
    <message>
        <source>in {0}</source>
        <translation>用时 {0}</translation>
    </message>
    <message>
        <source>, </source>
        <translation>，</translation>
    </message>
    <message>
        <source>{0}.</source>
        <translation>{0}。</translation>
    </message>
    <message>
        <source>Kernels assumed: {0}.</source>
        <translation>假定的内核：{0}。</translation>
    </message>
    <message>
        <source>Values made up: {0}.</source>
        <translation>假设的数值：{0}。</translation>
    </message>
    <message>
        <source>No estimate yet. It follows as soon as the form changes.</source>
        <translation>还没有估计。改动表单后就会有。</translation>
    </message>
    <message>
        <source>Two training steps are traced without the card…</source>
        <translation>正在不用显卡追踪两步训练…</translation>
    </message>
    <message>
        <source>This estimate comes without a step to draw.</source>
        <translation>这个估计没有可以画出的步骤。</translation>
    </message>
    <message>
        <source>This estimate does not tell modules apart.</source>
        <translation>这个估计不区分模块。</translation>
    </message>
    <message>
        <source>The next whole step of the run is being written down…</source>
        <translation>正在记录训练的下一个完整步骤…</translation>
    </message>
    <message>
        <source>{0} is being read…</source>
        <translation>正在读取 {0}…</translation>
    </message>
    <message>
        <source>No step of this run has been written down.</source>
        <translation>还没有记录本次训练的步骤。</translation>
    </message>
    <message>
        <source>the model itself</source>
        <translation>模型本身</translation>
    </message>
    <message>
        <source>Kind</source>
        <translation>类别</translation>
    </message>
    <message>
        <source>Size</source>
        <translation>大小</translation>
    </message>
    <message>
        <source>Made by</source>
        <translation>产生者</translation>
    </message>
    <message>
        <source>Lives</source>
        <translation>存活</translation>
    </message>
    <message>
        <source>Live here</source>
        <translation>此处活动</translation>
    </message>
    <message>
        <source>Owner</source>
        <translation>所属</translation>
    </message>
    <message>
        <source>event {0} of {1}</source>
        <translation>第 {0} 个事件，共 {1} 个</translation>
    </message>
    <message>
        <source>throughout</source>
        <translation>始终</translation>
    </message>
    <message>
        <source>from {0} on</source>
        <translation>从{0}开始</translation>
    </message>
    <message>
        <source>until {0}</source>
        <translation>到{0}为止</translation>
    </message>
    <message>
        <source>{0} events</source>
        <translation>{0} 个事件</translation>
    </message>
    <message>
        <source>{0}, {1} events</source>
        <translation>{0}，{1} 个事件</translation>
    </message>
    <message>
        <source>{0} to {1}, {2} events</source>
        <translation>{0}到{1}，{2} 个事件</translation>
    </message>
    <message>
        <source>event {0}</source>
        <translation>第 {0} 个事件</translation>
    </message>
    <message>
        <source>peak {0}</source>
        <translation>峰值 {0}</translation>
    </message>
    <message>
        <source>reserved</source>
        <translation>已保留</translation>
    </message>
    <message>
        <source>room</source>
        <translation>可用</translation>
    </message>
    <message>
        <source>Room for this process: {0}. Capacity less other processes and the CUDA context.</source>
        <translation>本进程可用 {0}：容量减去其他进程和 CUDA 上下文。</translation>
    </message>
</context>
<context>
    <name>MemoryPage</name>
    <message>
        <source>Step</source>
        <translation>步骤</translation>
    </message>
    <message>
        <source>Modules</source>
        <translation>模块</translation>
    </message>
    <message>
        <source>Blocks</source>
        <translation>内存块</translation>
    </message>
    <message>
        <source>Peak</source>
        <translation>峰值</translation>
    </message>
    <message>
        <source>Largest blocks</source>
        <translation>最大的内存块</translation>
    </message>
    <message>
        <source>Tables</source>
        <translation>表格</translation>
    </message>
</context>
<context>
    <name>ModulePage</name>
    <message>
        <source>Search modules</source>
        <translation>搜索模块</translation>
    </message>
    <message>
        <source>To the largest</source>
        <translation>到最大处</translation>
    </message>
    <message>
        <source>Open the way down to where most of the bytes are</source>
        <translation>展开到占用最多的地方</translation>
    </message>
    <message>
        <source>Copy</source>
        <translation>复制</translation>
    </message>
    <message>
        <source>Copy all modules as a table</source>
        <translation>把所有模块复制为表格</translation>
    </message>
    <message>
        <source>Modules</source>
        <translation>模块</translation>
    </message>
</context>
<context>
    <name>Modules</name>
    <message>
        <source>Module</source>
        <translation>模块</translation>
    </message>
    <message>
        <source>At the peak</source>
        <translation>峰值时</translation>
    </message>
    <message>
        <source>Size</source>
        <translation>大小</translation>
    </message>
    <message>
        <source>Parameters</source>
        <translation>参数</translation>
    </message>
    <message>
        <source>Class</source>
        <translation>类</translation>
    </message>
    <message>
        <source>{0} found</source>
        <translation>找到 {0} 个</translation>
    </message>
    <message>
        <source>No module has “{0}” in its name or class.</source>
        <translation>没有名称或类中含“{0}”的模块。</translation>
    </message>
</context>
<context>
    <name>NoticeBars</name>
    <message>
        <source>Hide</source>
        <translation>隐藏</translation>
    </message>
    <message>
        <source>The run {0} ended unexpectedly at step {1}, {2}. Resume from its checkpoint?</source>
        <translation>训练 {0} 于 {2} 在第 {1} 步意外结束。要从检查点继续吗？</translation>
    </message>
    <message>
        <source>Resume</source>
        <translation>继续</translation>
    </message>
    <message>
        <source>Leave it</source>
        <translation>放弃</translation>
    </message>
</context>
<context>
    <name>Numbers</name>
    <message>
        <source>{0} s</source>
        <translation>{0} 秒</translation>
    </message>
    <message>
        <source>{0} min</source>
        <translation>{0} 分钟</translation>
    </message>
    <message>
        <source>{0} min {1} s</source>
        <translation>{0} 分 {1} 秒</translation>
    </message>
    <message>
        <source>{0} h</source>
        <translation>{0} 小时</translation>
    </message>
    <message>
        <source>{0} h {1} min</source>
        <translation>{0} 小时 {1} 分</translation>
    </message>
    <message>
        <source>{0} d</source>
        <translation>{0} 天</translation>
    </message>
    <message>
        <source>{0} d {1} h</source>
        <translation>{0} 天 {1} 小时</translation>
    </message>
    <message>
        <source>{0} to {1}</source>
        <translation>{0} 至 {1}</translation>
    </message>
    <message>
        <source>{0} {1}</source>
        <translation>{0}{1}</translation>
    </message>
</context>
<context>
    <name>OomWords</name>
    <message>
        <source>The card&apos;s memory was full</source>
        <translation>显存已满</translation>
    </message>
    <message>
        <source>A limit was reached, not the end of the card</source>
        <translation>达到了设定的上限，显卡本身并未用尽</translation>
    </message>
    <message>
        <source>Perhaps the computer&apos;s main memory was full</source>
        <translation>也许是电脑内存满了</translation>
    </message>
    <message>
        <source>A loader worker ended: killed for want of RAM, or by an error of its own.</source>
        <translation>一个数据加载进程意外结束：可能因内存不足被系统终止，也可能是自身出错。</translation>
    </message>
    <message>
        <source>Look for &apos;Out of memory: Killed&apos; in the system&apos;s log; run once without workers to see their errors.</source>
        <translation>在系统日志中查找 “Out of memory: Killed”；再不用加载进程运行一次，以查看其错误。</translation>
    </message>
    <message>
        <source>The computer&apos;s main memory was full, not the card&apos;s</source>
        <translation>满的是电脑内存，不是显存</translation>
    </message>
    <message>
        <source>Shared memory (/dev/shm) was full, not the card&apos;s</source>
        <translation>满的是共享内存（/dev/shm），不是显存</translation>
    </message>
    <message>
        <source>Nothing was full: what was asked for cannot be had at all</source>
        <translation>并没有满：所要的根本无法满足</translation>
    </message>
    <message>
        <source>There was room, and the request was refused all the same</source>
        <translation>明明有空间，请求仍被拒绝</translation>
    </message>
    <message>
        <source>The training needs more than there is.</source>
        <translation>训练需要的显存超过了现有的。</translation>
    </message>
    <message>
        <source>One single tensor is too large; a smaller batch alone may not help.</source>
        <translation>单个张量就太大了，只减小批量可能不够。</translation>
    </message>
    <message>
        <source>Enough was free, but in pieces that were too small (fragmentation).</source>
        <translation>空闲显存足够，但都是太小的碎片（碎片化）。</translation>
    </message>
    <message>
        <source>Other processes held memory of the card; without them there would have been room.</source>
        <translation>其他进程占用了显存；没有它们就够用。</translation>
    </message>
    <message>
        <source>The memory went to something outside PyTorch&apos;s allocator: context, libraries, other programs.</source>
        <translation>显存被 PyTorch 分配器之外的东西占用：上下文、库或其他程序。</translation>
    </message>
    <message>
        <source>A memory fraction that was set for this process is used up; the card still had room.</source>
        <translation>本进程设定的显存比例已用完，显卡上其实还有空间。</translation>
    </message>
    <message>
        <source>Far more was free than asked for: another process came between, or the driver is in a bad state.</source>
        <translation>空闲远多于所需：可能被其他进程抢先，或驱动状态异常。</translation>
    </message>
    <message>
        <source>More is held than the card has: the driver had already moved memory to the computer&apos;s own.</source>
        <translation>占用超过了显卡容量：驱动早已改用电脑内存。</translation>
    </message>
    <message>
        <source>The size asked for is impossible: a mistake in the code, such as a negative dimension.</source>
        <translation>请求的大小不可能成立：代码有误，例如维度为负。</translation>
    </message>
    <message>
        <source>This platform gives no single block above 4 GB.</source>
        <translation>该平台不支持超过 4 GB 的单个内存块。</translation>
    </message>
    <message>
        <source>A loader worker or the program itself took too much RAM.</source>
        <translation>数据加载进程或程序本身占用了太多内存。</translation>
    </message>
    <message>
        <source>A graph was to be walked a second time. That is no memory error, but the hint in it (retain_graph=True) leads to one: every backward would keep its graph.</source>
        <translation>同一计算图被反向传播了两次。这不是显存错误，但照提示加上 retain_graph=True 就会导致显存不足：每次反向都会保留计算图。</translation>
    </message>
    <message>
        <source>Loader workers hand batches over in shared memory, and containers have little of it (64 MB).</source>
        <translation>加载进程通过共享内存传递批次，而容器默认只有 64 MB。</translation>
    </message>
    <message>
        <source>Take a smaller batch, and accumulate gradients to the same effective batch.</source>
        <translation>减小批量，用梯度累积保持等效批量。</translation>
    </message>
    <message>
        <source>Make the tensor smaller: shorter sequences, smaller images, attention or loss in chunks.</source>
        <translation>缩小该张量：更短的序列、更小的图片、分块计算注意力或损失。</translation>
    </message>
    <message>
        <source>Let the allocator join its pieces.</source>
        <translation>让分配器合并碎片。</translation>
    </message>
    <message>
        <source>Where expandable segments are not supported: keep large blocks whole.</source>
        <translation>不支持可扩展段时：不拆分大块。</translation>
    </message>
    <message>
        <source>End other processes on the card (nvidia-smi lists them), or take another card.</source>
        <translation>结束显卡上的其他进程（用 nvidia-smi 查看），或换一张卡。</translation>
    </message>
    <message>
        <source>Raise the limit of torch.cuda.set_per_process_memory_fraction(), or remove it.</source>
        <translation>调高或去掉 torch.cuda.set_per_process_memory_fraction() 的限制。</translation>
    </message>
    <message>
        <source>Raise PYTORCH_MPS_HIGH_WATERMARK_RATIO; without any limit the whole system may stall.</source>
        <translation>调高 PYTORCH_MPS_HIGH_WATERMARK_RATIO；完全不限制可能使整个系统卡死。</translation>
    </message>
    <message>
        <source>Leave libraries some room, for example with torch.cuda.set_per_process_memory_fraction(0.9).</source>
        <translation>给各种库留些空间，例如 torch.cuda.set_per_process_memory_fraction(0.9)。</translation>
    </message>
    <message>
        <source>Start the process anew: what earlier runs have left behind goes with it.</source>
        <translation>重新启动进程，之前遗留的占用会一并释放。</translation>
    </message>
    <message>
        <source>Set the driver to &apos;Prefer No Sysmem Fallback&apos;, so that the limit shows in time.</source>
        <translation>把驱动设为“首选无系统内存回退”，以便及时发现上限。</translation>
    </message>
    <message>
        <source>Print the shapes before the call; look for a negative or a very large dimension.</source>
        <translation>在调用前打印形状，查找为负或过大的维度。</translation>
    </message>
    <message>
        <source>Take fewer loader workers, or a smaller prefetch_factor.</source>
        <translation>减少加载进程，或减小 prefetch_factor。</translation>
    </message>
    <message>
        <source>Give the container more shared memory.</source>
        <translation>给容器更多共享内存。</translation>
    </message>
    <message>
        <source>Free RAM: close programs, keep less of the data in memory, use memory-mapped files.</source>
        <translation>释放内存：关闭程序，少缓存数据，使用内存映射文件。</translation>
    </message>
    <message>
        <source>Compare the total in the message with the card&apos;s.</source>
        <translation>核对报错中的总量与显卡容量。</translation>
    </message>
    <message>
        <source>Look at the limits of main memory: page file (Windows), ulimit, the container&apos;s memory.</source>
        <translation>检查内存限制：页面文件（Windows）、ulimit、容器内存。</translation>
    </message>
    <message>
        <source>Add the losses up and call backward() once, or detach() what comes from the step before.</source>
        <translation>把损失相加后只调用一次 backward()，或对上一步的结果使用 detach()。</translation>
    </message>
    <message>
        <source>Do not answer with retain_graph=True alone: memory would grow with every step.</source>
        <translation>不要只加 retain_graph=True：显存会逐步增长。</translation>
    </message>
    <message>
        <source>Live tensors of this process</source>
        <translation>本进程的活跃张量</translation>
    </message>
    <message>
        <source>Private pools (CUDA graphs)</source>
        <translation>私有池（CUDA 图）</translation>
    </message>
    <message>
        <source>Idle in PyTorch&apos;s cache</source>
        <translation>PyTorch 缓存（空闲）</translation>
    </message>
    <message>
        <source>Outside PyTorch: context and libraries</source>
        <translation>PyTorch 之外：上下文和库</translation>
    </message>
    <message>
        <source>Other processes</source>
        <translation>其他进程</translation>
    </message>
    <message>
        <source>Free</source>
        <translation>空闲</translation>
    </message>
    <message>
        <source>A figure larger than any memory was left out; it stands for &apos;unknown&apos;.</source>
        <translation>忽略了一个大得不可能的数字，它表示“未知”。</translation>
    </message>
    <message>
        <source>More allocated than there is: that is no mistake of the message.</source>
        <translation>已分配超过总量：报错本身并没有错。</translation>
    </message>
    <message>
        <source>More was free than was asked for.</source>
        <translation>空闲多于所需。</translation>
    </message>
    <message>
        <source>2 MiB and 20 MiB are sizes of the allocator: the tensor itself had up to 1 or 10 MiB.</source>
        <translation>2 MiB 和 20 MiB 是分配器的段大小：张量本身不超过 1 或 10 MiB。</translation>
    </message>
    <message>
        <source>The request alone is more than the whole card: a batch of one may not fit either.</source>
        <translation>单次请求就超过整张卡：批量为 1 也可能放不下。</translation>
    </message>
    <message>
        <source>The text has retain_graph=True: every such backward keeps its whole graph.</source>
        <translation>文中有 retain_graph=True：每次这样的反向都会保留整个计算图。</translation>
    </message>
    <message>
        <source>Loader workers count together with the main process.</source>
        <translation>加载进程与主进程的内存要合在一起算。</translation>
    </message>
    <message>
        <source>Message of {0}.</source>
        <translation>来自 {0} 的报错。</translation>
    </message>
    <message>
        <source>Process {0} holds {1}.</source>
        <translation>进程 {0} 占用 {1}。</translation>
    </message>
    <message>
        <source>{0} were asked for.</source>
        <translation>请求 {0}。</translation>
    </message>
    <message>
        <source>{0} of {1} were free.</source>
        <translation>共 {1}，空闲 {0}。</translation>
    </message>
    <message>
        <source>There are {0} in all.</source>
        <translation>总共 {0}。</translation>
    </message>
    <message>
        <source>{0} are allowed for this process.</source>
        <translation>本进程上限 {0}。</translation>
    </message>
</context>
<context>
    <name>Outlook</name>
    <message>
        <source>The first optimizer step may run out of memory</source>
        <translation>首次优化器更新时显存可能不足</translation>
    </message>
    <message>
        <source>Out of memory likely in the first optimizer step</source>
        <translation>首次优化器更新时显存很可能不足</translation>
    </message>
    <message>
        <source>{0}: step {1}</source>
        <translation>{0}：第 {1} 步</translation>
    </message>
    <message>
        <source>{0}: step {1}, any moment now</source>
        <translation>{0}：第 {1} 步，随时可能发生</translation>
    </message>
    <message>
        <source>{0}: step {1}, in about {2}</source>
        <translation>{0}：第 {1} 步，约 {2}后</translation>
    </message>
    <message>
        <source>Out of memory likely with a larger batch</source>
        <translation>预计遇到更大的批次时显存不足</translation>
    </message>
    <message>
        <source>Out of memory likely in the validation</source>
        <translation>预计验证时显存不足</translation>
    </message>
    <message>
        <source>Out of memory likely while a checkpoint is saved</source>
        <translation>预计保存检查点时显存不足</translation>
    </message>
    <message>
        <source>Out of memory likely after resuming</source>
        <translation>预计接着训练后显存不足</translation>
    </message>
    <message>
        <source>The computer&apos;s main memory (RAM) is likely to be full</source>
        <translation>预计电脑内存将用尽</translation>
    </message>
    <message>
        <source>The card is full and spills into main memory: no error, but far slower</source>
        <translation>显存已满，正溢出到内存：不报错，但慢得多</translation>
    </message>
    <message>
        <source>A larger batch may run out of memory</source>
        <translation>更大的批次可能显存不足</translation>
    </message>
    <message>
        <source>Memory grows from step to step. Watching</source>
        <translation>显存逐步增长，正在观察</translation>
    </message>
    <message>
        <source>Free memory breaks into small pieces. Watching</source>
        <translation>空闲显存正变成碎片，继续观察</translation>
    </message>
    <message>
        <source>Another process takes more and more of the card. Watching</source>
        <translation>其他进程占用的显存越来越多，继续观察</translation>
    </message>
    <message>
        <source>The validation may run out of memory</source>
        <translation>验证时可能显存不足</translation>
    </message>
    <message>
        <source>Saving a checkpoint may run out of memory</source>
        <translation>保存检查点时可能显存不足</translation>
    </message>
    <message>
        <source>Resuming has left little room. Watching</source>
        <translation>接着训练后所剩显存不多，继续观察</translation>
    </message>
    <message>
        <source>Memory outside PyTorch&apos;s allocator grows. Watching</source>
        <translation>PyTorch 分配器之外的显存在增长，继续观察</translation>
    </message>
    <message>
        <source>The computer&apos;s main memory (RAM) fills up. Watching</source>
        <translation>电脑内存越来越满，继续观察</translation>
    </message>
    <message>
        <source>The card is about to spill into main memory. Watching</source>
        <translation>显存快要溢出到内存，继续观察</translation>
    </message>
    <message>
        <source>Spilling into RAM</source>
        <translation>显存溢出到内存</translation>
    </message>
    <message>
        <source>{0}  ({1}, 8 of 10)</source>
        <translation>{0}（{1}，把握八成）</translation>
    </message>
    <message>
        <source>Out of memory likely</source>
        <translation>显存很可能不足</translation>
    </message>
    <message>
        <source>Out of memory likely at step {0}</source>
        <translation>预计到第 {0} 步显存不足</translation>
    </message>
    <message>
        <source>Out of memory likely at step {0}, any moment now</source>
        <translation>预计到第 {0} 步显存不足，随时可能发生</translation>
    </message>
    <message>
        <source>Out of memory likely at step {0}, in about {1}</source>
        <translation>预计到第 {0} 步显存不足，约 {1}后</translation>
    </message>
    <message>
        <source>The optimizer makes its state in this step: it needs {0}, and {1} are free.</source>
        <translation>优化器在这一步建立状态：需要 {0}，空闲 {1}。</translation>
    </message>
    <message>
        <source>The optimizer makes its state in this step; the estimate puts the peak at {0}.</source>
        <translation>优化器在这一步建立状态，估计峰值为 {0}。</translation>
    </message>
    <message>
        <source>The optimizer makes its state in this step.</source>
        <translation>优化器在这一步建立状态。</translation>
    </message>
    <message>
        <source>Typical cause: a loss kept with its graph.</source>
        <translation>常见原因：保存了带计算图的损失。</translation>
    </message>
    <message>
        <source>Memory that is never freed.</source>
        <translation>有显存从未释放。</translation>
    </message>
    <message>
        <source>Memory that is never freed: +{0} a step for {1} steps, batch shape unchanged.</source>
        <translation>有显存从未释放：连续 {1} 步每步增加 {0}，批次形状不变。</translation>
    </message>
    <message>
        <source>Memory that is never freed: +{0} a step for {1} steps.</source>
        <translation>有显存从未释放：连续 {1} 步每步增加 {0}。</translation>
    </message>
    <message>
        <source>Memory that is never freed: +{0} every {1} steps.</source>
        <translation>有显存从未释放：每 {1} 步增加 {0}。</translation>
    </message>
    <message>
        <source>A batch of {0} samples is to come.</source>
        <translation>将遇到含 {0} 个样本的批次。</translation>
    </message>
    <message>
        <source>A batch of {0} pixels is to come.</source>
        <translation>将遇到 {0} 像素的批次。</translation>
    </message>
    <message>
        <source>A batch of {0} tokens is to come.</source>
        <translation>将遇到含 {0} 个词元的批次。</translation>
    </message>
    <message>
        <source>Batches become larger: every step needs {0} more than the one before, for {1} steps.</source>
        <translation>批次越来越大：连续 {1} 步，每步比前一步多用 {0}。</translation>
    </message>
    <message>
        <source>Batches vary by chance: the largest so far needed {0}, and there is room for {1}.</source>
        <translation>批次大小随机变化：至今最大的用了 {0}，最多可用 {1}。</translation>
    </message>
    <message>
        <source>It needs {0}, and there is room for {1}.</source>
        <translation>需要 {0}，可用 {1}。</translation>
    </message>
    <message>
        <source>Other processes have taken {0} more of this card.</source>
        <translation>其他进程又占用了这张卡 {0}。</translation>
    </message>
    <message>
        <source>Something takes memory of this card; the driver does not say who.</source>
        <translation>有东西占用了这张卡的显存，驱动没有说明是谁。</translation>
    </message>
    <message>
        <source>It grows by {0} every minute.</source>
        <translation>每分钟增加 {0}。</translation>
    </message>
    <message>
        <source>This run needs {0}, and there is room for {1}.</source>
        <translation>本次训练需要 {0}，可用 {1}。</translation>
    </message>
    <message>
        <source>Every batch of this validation leaves {0} behind: {1} are done, {2} are to come.</source>
        <translation>本次验证每个批次遗留 {0}：已完成 {1} 个，还有 {2} 个。</translation>
    </message>
    <message>
        <source>A checkpoint is put together in main memory: it needs {0}, and {1} are free.</source>
        <translation>检查点要先在内存中汇集：需要 {0}，空闲 {1}。</translation>
    </message>
    <message>
        <source>Context, libraries or communication have taken {0} more.</source>
        <translation>上下文、库或通信又占用了 {0}。</translation>
    </message>
    <message>
        <source>{0} of {1} of main memory are left.</source>
        <translation>内存共 {1}，还剩 {0}。</translation>
    </message>
    <message>
        <source>{0} of {1} are left of what the system may promise (commit limit).</source>
        <translation>系统提交上限 {1}，还剩 {0}。</translation>
    </message>
    <message>
        <source>{0} loader workers hold {1}.</source>
        <translation>{0} 个加载进程占用 {1}。</translation>
    </message>
    <message>
        <source>A batch is to come that is larger than those so far.</source>
        <translation>将遇到比以往更大的批次。</translation>
    </message>
    <message>
        <source>{0} are free but in pieces that no request fits into.</source>
        <translation>有 {0} 空闲，但都是放不下请求的碎片。</translation>
    </message>
    <message>
        <source>They grow by {0} a step.</source>
        <translation>碎片每步增加 {0}。</translation>
    </message>
    <message>
        <source>Free memory lies in pieces that no request fits into.</source>
        <translation>空闲显存都是放不下请求的碎片。</translation>
    </message>
    <message>
        <source>What the training itself holds stays level.</source>
        <translation>训练本身的占用没有变化。</translation>
    </message>
    <message>
        <source>Another process takes memory of this card.</source>
        <translation>其他进程占用了这张卡的显存。</translation>
    </message>
    <message>
        <source>What validation holds comes on top of the training.</source>
        <translation>验证所需的显存要加在训练之上。</translation>
    </message>
    <message>
        <source>Every validation leaves {0} behind; {1} more will fit.</source>
        <translation>每次验证遗留 {0}，还能再进行 {1} 次。</translation>
    </message>
    <message>
        <source>Saving makes a copy of the state on the card.</source>
        <translation>保存时会在显存里复制一份状态。</translation>
    </message>
    <message>
        <source>Every saved checkpoint leaves {0} behind; {1} more will fit.</source>
        <translation>每保存一个检查点遗留 {0}，还能再保存 {1} 个。</translation>
    </message>
    <message>
        <source>The loaded checkpoint is still on the card.</source>
        <translation>读入的检查点还留在显存里。</translation>
    </message>
    <message>
        <source>The loaded checkpoint has left {0} on the card.</source>
        <translation>读入的检查点在显存里遗留了 {0}。</translation>
    </message>
    <message>
        <source>Context, libraries or communication take more of the card.</source>
        <translation>上下文、库或通信占用了更多显存。</translation>
    </message>
    <message>
        <source>Processes of this run take more and more main memory.</source>
        <translation>本次训练的进程占用的内存越来越多。</translation>
    </message>
    <message>
        <source>The driver moves memory of the card to main memory and back.</source>
        <translation>驱动在显存和内存之间来回搬运。</translation>
    </message>
    <message>
        <source>The driver moves memory of the card to main memory and back: a step takes {0} times as long.</source>
        <translation>驱动在显存和内存之间来回搬运：每步耗时是原来的 {0} 倍。</translation>
    </message>
    <message>
        <source>First optimizer step</source>
        <translation>首次优化器更新</translation>
    </message>
    <message>
        <source>A larger batch</source>
        <translation>更大的批次</translation>
    </message>
    <message>
        <source>Memory never freed</source>
        <translation>显存从未释放</translation>
    </message>
    <message>
        <source>Memory in small pieces</source>
        <translation>显存碎片</translation>
    </message>
    <message>
        <source>Another process on the card</source>
        <translation>显卡上的其他进程</translation>
    </message>
    <message>
        <source>Validation</source>
        <translation>验证</translation>
    </message>
    <message>
        <source>Saving a checkpoint</source>
        <translation>保存检查点</translation>
    </message>
    <message>
        <source>Resuming from a checkpoint</source>
        <translation>从检查点接着训练</translation>
    </message>
    <message>
        <source>Memory outside the allocator</source>
        <translation>分配器之外的显存</translation>
    </message>
    <message>
        <source>Main memory (RAM)</source>
        <translation>电脑内存</translation>
    </message>
    <message>
        <source>first step</source>
        <translation>首次更新</translation>
    </message>
    <message>
        <source>larger batch</source>
        <translation>更大批次</translation>
    </message>
    <message>
        <source>leak</source>
        <translation>泄漏</translation>
    </message>
    <message>
        <source>small pieces</source>
        <translation>碎片</translation>
    </message>
    <message>
        <source>other process</source>
        <translation>其他进程</translation>
    </message>
    <message>
        <source>validation</source>
        <translation>验证</translation>
    </message>
    <message>
        <source>saving</source>
        <translation>保存</translation>
    </message>
    <message>
        <source>resuming</source>
        <translation>接着训练</translation>
    </message>
    <message>
        <source>outside PyTorch</source>
        <translation>PyTorch 之外</translation>
    </message>
    <message>
        <source>RAM</source>
        <translation>内存</translation>
    </message>
    <message>
        <source>spilling</source>
        <translation>溢出</translation>
    </message>
    <message>
        <source>watching</source>
        <translation>观察中</translation>
    </message>
    <message>
        <source>likely</source>
        <translation>很可能</translation>
    </message>
    <message>
        <source>imminent</source>
        <translation>即将发生</translation>
    </message>
    <message>
        <source>Adam and AdamW keep two numbers for every parameter and make them in the first step. A smaller network, SGD, an 8-bit Adam, or an update without foreach needs less. A smaller batch helps only when activations are the larger part.</source>
        <translation>Adam 和 AdamW 为每个参数保存两个数，并在第一步时创建。更小的网络、SGD、8 位 Adam 或不用 foreach 的更新需要得更少。只有当激活占大头时，减小批量才有帮助。</translation>
    </message>
    <message>
        <source>Activations grow with the samples, tokens or pixels of a batch, and one batch of the data is larger than the others. Cut or split the longest samples, sort them by length so that batches hold as many tokens each, or take fewer samples and accumulate.</source>
        <translation>激活随批次的样本、词元或像素增长，而数据中有一个批次特别大。请截断或拆分最长的样本，按长度分组使各批词元数相近，或减少样本并累积梯度。</translation>
    </message>
    <message>
        <source>Something keeps a tensor of every step. Look for a list or a running total that takes the loss itself: total += loss keeps the whole graph, total += loss.item() keeps a number. Smaller batches only move the day.</source>
        <translation>有代码保存了每一步的张量。请找把损失本身放进列表或累加的地方：total += loss 会留住整张计算图，total += loss.item() 只留一个数。减小批量只能推迟。</translation>
    </message>
    <message>
        <source>What is free lies in pieces, and none is large enough. Expandable segments join them: set the variable below before the program starts. Batches of equal shape help too, and so does leaving max_split_size_mb alone.</source>
        <translation>空闲显存都是碎片，没有一块够大。可扩展段能把它们连起来：在程序启动前设置下面的变量。批次形状一致、不改动 max_split_size_mb 也有帮助。</translation>
    </message>
    <message>
        <source>Memory that another process takes is not there for this run. End it, move one of the two to another card, or let this run pause until it is over. A second training of your own counts as well.</source>
        <translation>其他进程占用的显存，本次训练就用不到。请结束它，把其中一个移到另一张卡，或先暂停本次训练。您自己的另一个训练也算在内。</translation>
    </message>
    <message>
        <source>Validation comes on top of what training holds. Run it under torch.inference_mode(), add up numbers and not tensors, move kept outputs to the CPU, and take a smaller validation batch.</source>
        <translation>验证要在训练占用之上再用显存。请在 torch.inference_mode() 下验证，累加数值而不是张量，把要保留的输出移到 CPU，并减小验证批量。</translation>
    </message>
    <message>
        <source>A copy of the state on the card doubles it for a moment. Copy tensor by tensor to main memory before saving, keep moving averages there too, and let go of the copy when it is written.</source>
        <translation>在显存里复制状态会使占用暂时加倍。保存前请逐个张量复制到内存，滑动平均也放在内存，写完后释放副本。</translation>
    </message>
    <message>
        <source>A checkpoint that is loaded onto the card lies there beside the model. Load it with map_location=&apos;cpu&apos;, load the state, then delete the checkpoint before the first step.</source>
        <translation>读到显存里的检查点会与模型并存。请用 map_location=&apos;cpu&apos; 读入，载入状态后，在第一步之前删除它。</translation>
    </message>
    <message>
        <source>Context, cuDNN and cuBLAS workspaces, compiled kernels and communication buffers lie outside PyTorch&apos;s allocator. Keep shapes constant, switch torch.backends.cudnn.benchmark off, limit NCCL&apos;s buffers, or leave them room with torch.cuda.set_per_process_memory_fraction().</source>
        <translation>上下文、cuDNN 与 cuBLAS 工作区、编译的内核和通信缓冲都在 PyTorch 分配器之外。请保持形状不变，关闭 torch.backends.cudnn.benchmark，限制 NCCL 缓冲，或用 torch.cuda.set_per_process_memory_fraction() 给它们留出空间。</translation>
    </message>
    <message>
        <source>This is the computer&apos;s memory, not the card&apos;s. Fewer loader workers, no growing Python lists in the data set (arrays are shared, lists are copied by every worker), and no cache of decoded samples.</source>
        <translation>这是电脑内存，不是显存。请减少加载进程，数据集中不要用不断增长的 Python 列表（数组可共享，列表会被每个进程复制），也不要缓存解码后的样本。</translation>
    </message>
    <message>
        <source>On Windows and WSL the driver moves what does not fit into main memory. Take a smaller batch, or set &apos;CUDA - Sysmem Fallback Policy&apos; to &apos;Prefer No Sysmem Fallback&apos; in the NVIDIA control panel: then there is an error instead.</source>
        <translation>在 Windows 和 WSL 上，驱动会把放不下的移到内存。请减小批量，或在 NVIDIA 控制面板把“CUDA - 系统内存回退策略”设为“首选无系统内存回退”，这样会直接报错。</translation>
    </message>
    <message>
        <source>Save what is learnt and pause.</source>
        <translation>保存已学到的并暂停。</translation>
    </message>
    <message>
        <source>Pause before the call that cannot succeed.</source>
        <translation>在无法成功的调用之前暂停。</translation>
    </message>
    <message>
        <source>Shrink the micro-batch; accumulation keeps the batch as large.</source>
        <translation>缩小微批量，用梯度累积保持批量不变。</translation>
    </message>
    <message>
        <source>Cut or split the longest batch.</source>
        <translation>截断或拆分最长的批次。</translation>
    </message>
    <message>
        <source>Draw one step and see who keeps memory.</source>
        <translation>绘制一步，看看是谁占着显存。</translation>
    </message>
    <message>
        <source>Save, then start again with expandable segments.</source>
        <translation>先保存，再启用可扩展段重新开始。</translation>
    </message>
    <message>
        <source>End the other process or move it to another card.</source>
        <translation>结束其他进程，或把它移到另一张卡。</translation>
    </message>
    <message>
        <source>Take a smaller batch for the validation.</source>
        <translation>减小验证批量。</translation>
    </message>
    <message>
        <source>Validate without a graph and keep no outputs on the card.</source>
        <translation>验证时不建计算图，也不在显存里保留输出。</translation>
    </message>
    <message>
        <source>Copy the state to main memory before it is saved.</source>
        <translation>保存前把状态复制到内存。</translation>
    </message>
    <message>
        <source>Load the checkpoint into main memory and let go of it.</source>
        <translation>把检查点读入内存，用完即释放。</translation>
    </message>
    <message>
        <source>Limit what cuDNN, compilers and communication take.</source>
        <translation>限制 cuDNN、编译器和通信的占用。</translation>
    </message>
    <message>
        <source>Take fewer loader workers.</source>
        <translation>减少加载进程。</translation>
    </message>
    <message>
        <source>Free main memory: close programs or caches.</source>
        <translation>释放内存：关闭程序或缓存。</translation>
    </message>
    <message>
        <source>Use less than the card holds: a smaller micro-batch.</source>
        <translation>不要用满显卡：缩小微批量。</translation>
    </message>
    <message>
        <source>Set before the program starts:</source>
        <translation>在程序启动前设置：</translation>
    </message>
</context>
<context>
    <name>PathEditor</name>
    <message>
        <source>Choose a folder</source>
        <translation>选择文件夹</translation>
    </message>
</context>
<context>
    <name>PhaseNames</name>
    <message>
        <source>Build</source>
        <translation>构建</translation>
    </message>
    <message>
        <source>Forward</source>
        <translation>前向</translation>
    </message>
    <message>
        <source>Backward</source>
        <translation>反向</translation>
    </message>
    <message>
        <source>Optimizer</source>
        <translation>优化器</translation>
    </message>
    <message>
        <source>Zero grad</source>
        <translation>清零梯度</translation>
    </message>
    <message>
        <source>Validation</source>
        <translation>验证</translation>
    </message>
    <message>
        <source>Save</source>
        <translation>保存</translation>
    </message>
</context>
<context>
    <name>Phases</name>
    <message>
        <source>while the model was built</source>
        <translation>建立模型时</translation>
    </message>
    <message>
        <source>in the forward pass</source>
        <translation>前向传播时</translation>
    </message>
    <message>
        <source>in the backward pass</source>
        <translation>反向传播时</translation>
    </message>
    <message>
        <source>in the optimizer step</source>
        <translation>优化器更新时</translation>
    </message>
    <message>
        <source>while gradients were cleared</source>
        <translation>清除梯度时</translation>
    </message>
    <message>
        <source>during validation</source>
        <translation>验证时</translation>
    </message>
    <message>
        <source>while a checkpoint was saved</source>
        <translation>保存检查点时</translation>
    </message>
</context>
<context>
    <name>PostMortem</name>
    <message>
        <source>The run has ended here.</source>
        <translation>训练在此结束。</translation>
    </message>
    <message>
        <source>The run went on; it needs less memory at this place now.</source>
        <translation>训练已继续；现在此处需要的显存更少。</translation>
    </message>
    <message>
        <source>The run went on with a micro-batch of {0}.</source>
        <translation>训练以微批量 {0} 继续。</translation>
    </message>
    <message>
        <source>The run went on with a micro-batch of {0} in place of {1}; the batch is as large as before.</source>
        <translation>微批量从 {1} 改为 {0} 后训练继续，批量不变。</translation>
    </message>
    <message>
        <source>Step {0}: the end</source>
        <translation>第 {0} 步：结束</translation>
    </message>
    <message>
        <source>Step {0}: went on with {1}</source>
        <translation>第 {0} 步：以 {1} 继续</translation>
    </message>
    <message>
        <source>The {0} of the card were full.</source>
        <translation>显卡的 {0} 已全部占满。</translation>
    </message>
    <message>
        <source>{0} of {1} were free when {2} more were needed.</source>
        <translation>还需要 {2} 时，{1} 中只剩 {0}。</translation>
    </message>
    <message>
        <source>The run needs more than the card has. A smaller batch with accumulation keeps the training as it is; bfloat16 halves the activations.</source>
        <translation>这次训练需要的显存超过显卡容量。减小批量并累积梯度，训练效果不变；bfloat16 可让激活减半。</translation>
    </message>
</context>
<context>
    <name>PostMortemPanel</name>
    <message>
        <source>What held it</source>
        <translation>谁占用了显存</translation>
    </message>
    <message>
        <source>Largest owners</source>
        <translation>占用最多的</translation>
    </message>
    <message>
        <source>What torch said</source>
        <translation>torch 的报错</translation>
    </message>
    <message>
        <source>What to change</source>
        <translation>怎么改</translation>
    </message>
    <message>
        <source>Copy</source>
        <translation>复制</translation>
    </message>
    <message>
        <source>Copy all of this</source>
        <translation>复制全部内容</translation>
    </message>
    <message>
        <source>Which out-of-memory error</source>
        <translation>哪一次显存不足</translation>
    </message>
</context>
<context>
    <name>Processes</name>
    <message>
        <source>Process</source>
        <translation>进程</translation>
    </message>
    <message>
        <source>PID</source>
        <translation>PID</translation>
    </message>
    <message>
        <source>User</source>
        <translation>用户</translation>
    </message>
    <message>
        <source>VRAM</source>
        <translation>显存</translation>
    </message>
    <message>
        <source>GPU</source>
        <translation>GPU</translation>
    </message>
    <message>
        <source>Memory bus</source>
        <translation>显存总线</translation>
    </message>
    <message>
        <source>CPU</source>
        <translation>CPU</translation>
    </message>
    <message>
        <source>RAM</source>
        <translation>内存</translation>
    </message>
    <message>
        <source>Started</source>
        <translation>启动于</translation>
    </message>
    <message>
        <source>MIG slice</source>
        <translation>MIG 切片</translation>
    </message>
    <message>
        <source>Container</source>
        <translation>容器</translation>
    </message>
    <message>
        <source>Name of the program; the whole command is in the tooltip of its row.</source>
        <translation>程序名；完整命令见该行的提示。</translation>
    </message>
    <message>
        <source>Number of the process in this system.</source>
        <translation>进程在本系统中的编号。</translation>
    </message>
    <message>
        <source>Whose process it is.</source>
        <translation>进程属于谁。</translation>
    </message>
    <message>
        <source>What the driver books on the process, its CUDA context included.</source>
        <translation>驱动记在该进程名下的显存，含 CUDA 上下文。</translation>
    </message>
    <message>
        <source>Share of the last second or so in which kernels of this process ran. How much of the card they used it does not say.</source>
        <translation>最近约一秒内该进程的内核运行的时间占比。它不表示用了显卡的多少。</translation>
    </message>
    <message>
        <source>Share of the last second or so in which this process read or wrote the card&apos;s memory.</source>
        <translation>最近约一秒内该进程读写显存的时间占比。</translation>
    </message>
    <message>
        <source>Processor time; 100 % is one core.</source>
        <translation>处理器时间；100 % 为一个核心。</translation>
    </message>
    <message>
        <source>Main memory that the process has resident (RSS), shared pages included.</source>
        <translation>进程常驻的内存（RSS），含共享页。</translation>
    </message>
    <message>
        <source>When the process was started.</source>
        <translation>进程的启动时间。</translation>
    </message>
    <message>
        <source>The GPU instance of a card in MIG mode.</source>
        <translation>MIG 模式下显卡的 GPU 实例。</translation>
    </message>
    <message>
        <source>What kind of container it runs in.</source>
        <translation>进程所在容器的类型。</translation>
    </message>
    <message>
        <source>compute</source>
        <translation>计算</translation>
    </message>
    <message>
        <source>graphics</source>
        <translation>图形</translation>
    </message>
    <message>
        <source>both</source>
        <translation>计算和图形</translation>
    </message>
    <message>
        <source>outside the container</source>
        <translation>容器之外</translation>
    </message>
    <message>
        <source>unknown</source>
        <translation>未知</translation>
    </message>
    <message>
        <source>other</source>
        <translation>其他</translation>
    </message>
    <message>
        <source>outside</source>
        <translation>容器外</translation>
    </message>
    <message>
        <source>not told</source>
        <translation>未知</translation>
    </message>
    <message>
        <source>The process runs outside this container: the driver gives its number, and no more is seen.</source>
        <translation>该进程在本容器之外运行：驱动只给出其编号，其余不可见。</translation>
    </message>
    <message>
        <source>The system does not tell this about processes of other users.</source>
        <translation>系统不提供其他用户进程的这项信息。</translation>
    </message>
    <message>
        <source>n/a</source>
        <translation>无</translation>
    </message>
    <message>
        <source>This program</source>
        <translation>本程序</translation>
    </message>
    <message>
        <source>On a simulated card</source>
        <translation>在模拟显卡上</translation>
    </message>
    <message>
        <source>User: {0}</source>
        <translation>用户：{0}</translation>
    </message>
    <message>
        <source>Started: {0}</source>
        <translation>启动：{0}</translation>
    </message>
    <message>
        <source>Container: {0}</source>
        <translation>容器：{0}</translation>
    </message>
    <message>
        <source>Processes on the card</source>
        <translation>显卡上的进程</translation>
    </message>
    <message>
        <source>No process uses the card, or the driver lists none.</source>
        <translation>没有进程使用这块显卡，或驱动未列出。</translation>
    </message>
    <message>
        <source>No process has that in its name, number, user or command.</source>
        <translation>没有进程的名称、编号、用户或命令与之匹配。</translation>
    </message>
    <message>
        <source>Name, PID, user, command</source>
        <translation>名称、PID、用户、命令</translation>
    </message>
    <message>
        <source>Show only processes with these words</source>
        <translation>只显示包含这些词的进程</translation>
    </message>
    <message>
        <source>Columns, copying, ending</source>
        <translation>列、复制、结束</translation>
    </message>
    <message>
        <source>Columns</source>
        <translation>列</translation>
    </message>
    <message>
        <source>As at first</source>
        <translation>恢复默认</translation>
    </message>
    <message>
        <source>In a window of its own</source>
        <translation>在单独的窗口中</translation>
    </message>
    <message>
        <source>Copy row</source>
        <translation>复制该行</translation>
    </message>
    <message>
        <source>Copy all rows</source>
        <translation>复制所有行</translation>
    </message>
    <message>
        <source>Copy command</source>
        <translation>复制命令</translation>
    </message>
    <message>
        <source>Processes</source>
        <translation>进程</translation>
    </message>
    <message>
        <source>{0} of {1} processes</source>
        <translation>{0} / {1} 个进程</translation>
    </message>
    <message>
        <source>1 process</source>
        <translation>1 个进程</translation>
    </message>
    <message>
        <source>{0} processes</source>
        <translation>{0} 个进程</translation>
    </message>
    <message>
        <source>End process…</source>
        <translation>结束进程…</translation>
    </message>
    <message>
        <source>End by force…</source>
        <translation>强制结束…</translation>
    </message>
    <message>
        <source>Read-only mode: Floodmark ends no process.</source>
        <translation>只读模式：水位线不结束任何进程。</translation>
    </message>
    <message>
        <source>This is Floodmark, or was started by it. Stop the run or quit instead.</source>
        <translation>这是水位线自身或由它启动的进程。请改为停止训练或退出程序。</translation>
    </message>
    <message>
        <source>It is on a simulated card.</source>
        <translation>它在模拟显卡上。</translation>
    </message>
    <message>
        <source>It runs outside this container, where its number belongs to another process or to none.</source>
        <translation>它在本容器之外运行；在容器内，这个编号属于别的进程或不存在。</translation>
    </message>
    <message>
        <source>The system does not say since when it runs, so it cannot be told from another with its number.</source>
        <translation>系统未给出其启动时间，无法与使用同一编号的其他进程区分。</translation>
    </message>
    <message>
        <source>No process is chosen.</source>
        <translation>未选择进程。</translation>
    </message>
    <message>
        <source>End {0} by force?</source>
        <translation>强制结束 {0}？</translation>
    </message>
    <message>
        <source>End {0}?</source>
        <translation>结束 {0}？</translation>
    </message>
    <message>
        <source>Card</source>
        <translation>显卡</translation>
    </message>
    <message>
        <source>Command</source>
        <translation>命令</translation>
    </message>
    <message>
        <source>It is ended in the middle of what it does. Work that is not saved is lost, and files it was writing may be left broken.</source>
        <translation>它会在工作中途被终止。未保存的工作将丢失，正在写入的文件可能损坏。</translation>
    </message>
    <message>
        <source>It is asked to end. Work that it does not save by itself is lost, such as steps of a training since its last checkpoint.</source>
        <translation>将要求它结束。它自己没有保存的工作会丢失，例如训练自上个检查点以来的步。</translation>
    </message>
    <message>
        <source>End by force</source>
        <translation>强制结束</translation>
    </message>
    <message>
        <source>End process</source>
        <translation>结束进程</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>{0} ({1}) was asked to end.</source>
        <translation>已要求 {0}（{1}）结束。</translation>
    </message>
    <message>
        <source>{0} ({1}) has ended.</source>
        <translation>{0}（{1}）已结束。</translation>
    </message>
    <message>
        <source>{0} ({1}) had ended before.</source>
        <translation>{0}（{1}）此前已结束。</translation>
    </message>
    <message>
        <source>{0} ({1}) was asked to end and is still there.</source>
        <translation>已要求 {0}（{1}）结束，但它仍在运行。</translation>
    </message>
    <message>
        <source>{0} ({1}) is still there: it waits inside the driver, and ends when that answers or the machine restarts.</source>
        <translation>{0}（{1}）仍在：它在驱动内等待，待驱动响应或重启机器后才会结束。</translation>
    </message>
    <message>
        <source>{0} ({1}) belongs to somebody else. Its owner or an administrator can end it.</source>
        <translation>{0}（{1}）属于其他用户，其所有者或管理员可以结束它。</translation>
    </message>
    <message>
        <source>{0} ({1}) belongs to {2}. Its owner or an administrator can end it.</source>
        <translation>{0}（{1}）属于 {2}，其所有者或管理员可以结束它。</translation>
    </message>
</context>
<context>
    <name>Progress</name>
    <message>
        <source>Epoch {0} of {1}</source>
        <translation>第 {0} / {1} 轮</translation>
    </message>
    <message>
        <source>took {0}</source>
        <translation>用时 {0}</translation>
    </message>
    <message>
        <source>ETA not known yet</source>
        <translation>剩余时间未知</translation>
    </message>
    <message>
        <source>ETA {0}</source>
        <translation>剩余 {0}</translation>
    </message>
    <message>
        <source>Micro-batch {0}, {1} samples a step</source>
        <translation>微批量 {0}，每步 {1} 个样本</translation>
    </message>
    <message>
        <source>{0}, since step {1}</source>
        <translation>{0}，自第 {1} 步起</translation>
    </message>
</context>
<context>
    <name>Reasons</name>
    <message>
        <source>not read yet</source>
        <translation>尚未读取</translation>
    </message>
    <message>
        <source>not supported</source>
        <translation>不支持</translation>
    </message>
    <message>
        <source>no permission</source>
        <translation>无权限</translation>
    </message>
    <message>
        <source>not in MIG mode</source>
        <translation>MIG 模式下不可用</translation>
    </message>
    <message>
        <source>hidden by Windows</source>
        <translation>被 Windows 隐藏</translation>
    </message>
    <message>
        <source>shared memory</source>
        <translation>共享内存</translation>
    </message>
    <message>
        <source>GPU lost</source>
        <translation>GPU 丢失</translation>
    </message>
    <message>
        <source>driver mismatch</source>
        <translation>驱动不匹配</translation>
    </message>
    <message>
        <source>no driver</source>
        <translation>没有驱动</translation>
    </message>
    <message>
        <source>timed out</source>
        <translation>超时</translation>
    </message>
    <message>
        <source>implausible value</source>
        <translation>数值不合理</translation>
    </message>
    <message>
        <source>nothing ran</source>
        <translation>期间未运行</translation>
    </message>
    <message>
        <source>card sleeps</source>
        <translation>显卡休眠</translation>
    </message>
    <message>
        <source>simulated card</source>
        <translation>模拟显卡</translation>
    </message>
    <message>
        <source>driver error</source>
        <translation>驱动错误</translation>
    </message>
    <message>
        <source>No reading has come yet.</source>
        <translation>还没有读到数据。</translation>
    </message>
    <message>
        <source>This card does not report it.</source>
        <translation>这块显卡不提供此项。</translation>
    </message>
    <message>
        <source>The driver gives it to administrators only.</source>
        <translation>驱动只向管理员提供此项。</translation>
    </message>
    <message>
        <source>The card is split into MIG instances; the driver gives no value then.</source>
        <translation>显卡已划分为 MIG 实例，驱动此时不提供数值。</translation>
    </message>
    <message>
        <source>Windows manages the memory of this card and hides the value.</source>
        <translation>这块显卡的显存由 Windows 管理，数值被隐藏。</translation>
    </message>
    <message>
        <source>Card and processor share one memory.</source>
        <translation>显卡与处理器共用内存。</translation>
    </message>
    <message>
        <source>The card has fallen off the bus. A restart of the machine usually brings it back.</source>
        <translation>显卡已从总线掉线，通常重启电脑可以恢复。</translation>
    </message>
    <message>
        <source>The driver was updated while it ran. Restart the machine to load the new one.</source>
        <translation>驱动在运行中被更新，请重启电脑以加载新驱动。</translation>
    </message>
    <message>
        <source>No NVIDIA driver was found.</source>
        <translation>没有找到 NVIDIA 驱动。</translation>
    </message>
    <message>
        <source>The driver did not answer in time.</source>
        <translation>驱动没有及时响应。</translation>
    </message>
    <message>
        <source>The driver gave a value that cannot be true.</source>
        <translation>驱动给出的数值不可能成立。</translation>
    </message>
    <message>
        <source>Nothing ran: the computer slept, or the program was stopped.</source>
        <translation>当时没有任何程序在运行：电脑处于休眠状态，或本程序被暂停。</translation>
    </message>
    <message>
        <source>The card sleeps to save power; reading it would wake it. It is read again when something uses it.</source>
        <translation>显卡为省电而休眠，读取会将其唤醒。有程序使用它时会恢复读取。</translation>
    </message>
    <message>
        <source>A simulated card has no such value.</source>
        <translation>模拟显卡没有此项。</translation>
    </message>
    <message>
        <source>The driver answered with an error.</source>
        <translation>驱动返回了错误。</translation>
    </message>
    <message>
        <source>n/a · {0}</source>
        <translation>无 · {0}</translation>
    </message>
</context>
<context>
    <name>RunForm</name>
    <message>
        <source>All settings</source>
        <translation>全部设置</translation>
    </message>
</context>
<context>
    <name>RunPanel</name>
    <message>
        <source>Progress of the run</source>
        <translation>训练进度</translation>
    </message>
</context>
<context>
    <name>SettingsDialog</name>
    <message>
        <source>Settings</source>
        <translation>设置</translation>
    </message>
    <message>
        <source>Theme</source>
        <translation>主题</translation>
    </message>
    <message>
        <source>Language</source>
        <translation>语言</translation>
    </message>
    <message>
        <source>Readings per second</source>
        <translation>每秒读数</translation>
    </message>
    <message>
        <source>Warnings and ends</source>
        <translation>告警与结束</translation>
    </message>
    <message>
        <source>Sessions are kept in</source>
        <translation>会话保存在</translation>
    </message>
    <message>
        <source>dark</source>
        <translation>深色</translation>
    </message>
    <message>
        <source>light</source>
        <translation>浅色</translation>
    </message>
    <message>
        <source>as the system</source>
        <translation>跟随系统</translation>
    </message>
    <message>
        <source>Icon in the tray, where the desktop has one</source>
        <translation>托盘图标（若桌面支持）</translation>
    </message>
    <message>
        <source>Desktop notifications</source>
        <translation>桌面通知</translation>
    </message>
    <message>
        <source>Only while the window is not in front</source>
        <translation>仅当窗口不在前台时</translation>
    </message>
    <message>
        <source>A sound with every warning</source>
        <translation>告警时发出声音</translation>
    </message>
    <message>
        <source>Open</source>
        <translation>打开</translation>
    </message>
    <message>
        <source>Open the folder of sessions</source>
        <translation>打开会话文件夹</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>关闭</translation>
    </message>
</context>
<context>
    <name>SidePanel</name>
    <message>
        <source>Side panel</source>
        <translation>侧栏</translation>
    </message>
    <message>
        <source>OOM</source>
        <translation>显存不足</translation>
    </message>
</context>
<context>
    <name>SourceSwitch</name>
    <message>
        <source>Estimate</source>
        <translation>估计</translation>
    </message>
    <message>
        <source>This run</source>
        <translation>本次训练</translation>
    </message>
    <message>
        <source>The step that was traced before the run</source>
        <translation>训练前追踪到的步骤</translation>
    </message>
    <message>
        <source>A step of the run, as it was</source>
        <translation>训练中实际的一步</translation>
    </message>
    <message>
        <source>Recording</source>
        <translation>快照</translation>
    </message>
    <message>
        <source>The memory snapshot that was opened</source>
        <translation>已打开的显存快照</translation>
    </message>
    <message>
        <source>Again</source>
        <translation>再记一步</translation>
    </message>
    <message>
        <source>Write down the next step of the run</source>
        <translation>记录训练的下一步</translation>
    </message>
</context>
<context>
    <name>StatusBar</name>
    <message>
        <source>{0} Hz · {1} late</source>
        <translation>{0} Hz · 迟到 {1}</translation>
    </message>
    <message>
        <source>{0} samples/s</source>
        <translation>{0} 样本/秒</translation>
    </message>
    <message>
        <source>Floodmark {0} CPU</source>
        <translation>水位线 CPU {0}</translation>
    </message>
    <message>
        <source>frame {0}</source>
        <translation>每帧 {0}</translation>
    </message>
    <message>
        <source>Readings of the cards per second, and how many of all came too late.</source>
        <translation>每秒读取显卡的次数，以及迟到的读数总数。</translation>
    </message>
    <message>
        <source>What the monitor itself costs.</source>
        <translation>监视程序自身的开销。</translation>
    </message>
    <message>
        <source>Energy of the card since the session began.</source>
        <translation>会话开始以来显卡的耗电量。</translation>
    </message>
    <message>
        <source>{0} kWh</source>
        <translation>{0} kWh</translation>
    </message>
</context>
<context>
    <name>Stragglers</name>
    <message>
        <source>slowed by heat</source>
        <translation>过热降频</translation>
    </message>
    <message>
        <source>slowed by its power limit</source>
        <translation>因功耗上限降频</translation>
    </message>
    <message>
        <source>lower clock, no reason given</source>
        <translation>频率偏低，原因不明</translation>
    </message>
    <message>
        <source>narrower PCIe link</source>
        <translation>PCIe 链路较窄</translation>
    </message>
    <message>
        <source>another process on it</source>
        <translation>有其他进程</translation>
    </message>
    <message>
        <source>waits for work</source>
        <translation>等待任务</translation>
    </message>
    <message>
        <source>keeps pace</source>
        <translation>步调一致</translation>
    </message>
    <message>
        <source>Card</source>
        <translation>显卡</translation>
    </message>
    <message>
        <source>Pace</source>
        <translation>步调</translation>
    </message>
    <message>
        <source>Utilisation</source>
        <translation>利用率</translation>
    </message>
    <message>
        <source>Power</source>
        <translation>功耗</translation>
    </message>
    <message>
        <source>SM clock</source>
        <translation>SM 频率</translation>
    </message>
    <message>
        <source>Temperature</source>
        <translation>温度</translation>
    </message>
    <message>
        <source>Cards of one job, the slowest first</source>
        <translation>同一任务的显卡，最慢的在前</translation>
    </message>
    <message>
        <source>Means of the last minute, each with its difference to the median of the other cards of the same job. A card is called slow only beyond the noise of that minute.</source>
        <translation>最近一分钟的平均值，并列出与同一任务其他显卡中位数的差。只有超出这一分钟的噪声，才判定显卡偏慢。</translation>
    </message>
    <message>
        <source>One card: there is nothing to compare it with.</source>
        <translation>只有一块显卡，无从比较。</translation>
    </message>
    <message>
        <source>Nothing to compare: no two cards of one kind have been busy with one job for the last minute.</source>
        <translation>无可比较：最近一分钟没有两块同型号的显卡在忙同一个任务。</translation>
    </message>
    <message>
        <source>The {0} cards do different things, so none of them can be called slow.</source>
        <translation>这 {0} 块显卡在做不同的事，无法判定哪块偏慢。</translation>
    </message>
    <message>
        <source>The {0} cards keep pace: no difference is beyond the noise of the last minute.</source>
        <translation>这 {0} 块显卡步调一致：差异都未超出最近一分钟的噪声。</translation>
    </message>
    <message>
        <source>{0} lags: heat held it back for {1} of the last minute, the others not.</source>
        <translation>{0} 落后：最近一分钟有 {1} 的时间因过热受限，其他显卡没有。</translation>
    </message>
    <message>
        <source>{0} lags: its clock is {1} below the others&apos;, because heat held it back for {2} of the last minute.</source>
        <translation>{0} 落后：最近一分钟有 {2} 的时间因过热受限，频率比其他显卡低 {1}。</translation>
    </message>
    <message>
        <source>{0} lags: its power limit keeps its clock {1} below the others&apos;.</source>
        <translation>{0} 落后：功耗上限使其频率比其他显卡低 {1}。</translation>
    </message>
    <message>
        <source>{0} lags: its clock is {1} below the others&apos;, and the driver reports no throttling. Was its clock or its power limit set by hand?</source>
        <translation>{0} 落后：频率比其他显卡低 {1}，而驱动未报告降频。是否手动设过频率或功耗上限？</translation>
    </message>
    <message>
        <source>{0} lags: its PCIe link is {1}, the others&apos; {2}. Look at the slot, the riser and the BIOS.</source>
        <translation>{0} 落后：其 PCIe 链路为 {1}，其他显卡为 {2}。请检查插槽、延长线和 BIOS。</translation>
    </message>
    <message>
        <source>{0} lags: another process takes {1} of its SM time.</source>
        <translation>{0} 落后：另一个进程占用了其 {1} 的 SM 时间。</translation>
    </message>
    <message>
        <source>{0} waits: its utilisation is {1}, the others&apos; {2}. Its data come late, or it has less to do.</source>
        <translation>{0} 在等待：利用率为 {1}，其他显卡为 {2}。数据来得晚，或任务较少。</translation>
    </message>
    <message>
        <source>{0} waits: its SM activity is {1}, the others&apos; {2}. Its data come late, or it has less to do.</source>
        <translation>{0} 在等待：SM 活跃度为 {1}，其他显卡为 {2}。数据来得晚，或任务较少。</translation>
    </message>
    <message>
        <source>gen {0} x{1}</source>
        <translation>第 {0} 代 x{1}</translation>
    </message>
</context>
<context>
    <name>Tank</name>
    <message>
        <source>VRAM, estimated</source>
        <translation>显存（估计）</translation>
    </message>
    <message>
        <source>VRAM at the last step</source>
        <translation>最后一步的显存</translation>
    </message>
    <message>
        <source>VRAM, shared with the processor</source>
        <translation>显存（与处理器共用）</translation>
    </message>
    <message>
        <source>VRAM</source>
        <translation>显存</translation>
    </message>
    <message>
        <source>Other processes</source>
        <translation>其他进程</translation>
    </message>
    <message>
        <source>CUDA context</source>
        <translation>CUDA 上下文</translation>
    </message>
    <message>
        <source>Parameters</source>
        <translation>参数</translation>
    </message>
    <message>
        <source>Gradients</source>
        <translation>梯度</translation>
    </message>
    <message>
        <source>Optimizer state</source>
        <translation>优化器状态</translation>
    </message>
    <message>
        <source>Activations</source>
        <translation>激活</translation>
    </message>
    <message>
        <source>Workspace</source>
        <translation>工作区</translation>
    </message>
    <message>
        <source>Cached, idle</source>
        <translation>缓存（空闲）</translation>
    </message>
    <message>
        <source>Model and optimizer</source>
        <translation>模型与优化器</translation>
    </message>
    <message>
        <source>Everything else</source>
        <translation>其余</translation>
    </message>
    <message>
        <source>n/a</source>
        <translation>无</translation>
    </message>
    <message>
        <source>brim</source>
        <translation>容量线</translation>
    </message>
    <message>
        <source>flood mark</source>
        <translation>水位线</translation>
    </message>
    <message>
        <source>free then</source>
        <translation>当时空闲</translation>
    </message>
    <message>
        <source>free now</source>
        <translation>当前空闲</translation>
    </message>
    <message>
        <source>Before the first step we said</source>
        <translation>首步之前的估计</translation>
    </message>
    <message>
        <source>Estimated peak</source>
        <translation>估计峰值</translation>
    </message>
    <message>
        <source>Estimating…</source>
        <translation>正在估计…</translation>
    </message>
    <message>
        <source>No estimate</source>
        <translation>没有估计</translation>
    </message>
    <message>
        <source>up to {0}</source>
        <translation>最高 {0}</translation>
    </message>
    <message>
        <source>measured {0}, error {1} %</source>
        <translation>实测 {0}，误差 {1} %</translation>
    </message>
    <message>
        <source>{0} too much for this card</source>
        <translation>超出显卡 {0}</translation>
    </message>
    <message>
        <source>{0} to spare</source>
        <translation>余量 {0}</translation>
    </message>
    <message>
        <source>Largest batch that fits</source>
        <translation>放得下的最大批量</translation>
    </message>
    <message>
        <source>none</source>
        <translation>无</translation>
    </message>
    <message>
        <source>No card</source>
        <translation>没有显卡</translation>
    </message>
</context>
<context>
    <name>TimelinePanel</name>
    <message>
        <source>Show more of the step</source>
        <translation>显示更大范围</translation>
    </message>
    <message>
        <source>Show less of the step</source>
        <translation>显示更小范围</translation>
    </message>
    <message>
        <source>Whole step</source>
        <translation>整步</translation>
    </message>
    <message>
        <source>Show the whole step</source>
        <translation>显示整个步骤</translation>
    </message>
</context>
<context>
    <name>TrayIcon</name>
    <message>
        <source>Show the window</source>
        <translation>显示窗口</translation>
    </message>
</context>
<context>
    <name>Verdict</name>
    <message>
        <source>No run. Here is the card</source>
        <translation>尚未训练，这是您的显卡</translation>
    </message>
    <message>
        <source>{0}. Its memory cannot be read.</source>
        <translation>{0}，无法读取显存。</translation>
    </message>
    <message>
        <source>{0}, {1}.</source>
        <translation>{0}，{1}。</translation>
    </message>
    <message>
        <source>{0}, {1}, of which {2} are free.</source>
        <translation>{0}，显存 {1}，空闲 {2}。</translation>
    </message>
    <message>
        <source>No card to watch: no NVIDIA driver was found</source>
        <translation>没有可监视的显卡：没有找到 NVIDIA 驱动</translation>
    </message>
    <message>
        <source>No card to watch: the driver lists none</source>
        <translation>没有可监视的显卡：驱动没有列出显卡</translation>
    </message>
    <message>
        <source>Looking for the cards of this machine</source>
        <translation>正在查找本机的显卡</translation>
    </message>
    <message>
        <source>No card to watch: {0}</source>
        <translation>没有可监视的显卡：{0}</translation>
    </message>
    <message>
        <source>Trainings run all the same, on the CPU or on a simulated card. Choose the device in the form.</source>
        <translation>仍可在 CPU 或模拟显卡上训练，请在表单中选择设备。</translation>
    </message>
    <message>
        <source>{0} no longer answers</source>
        <translation>{0} 没有响应</translation>
    </message>
    <message>
        <source>{0} The curves show a gap until it is back.</source>
        <translation>{0}恢复之前曲线会留空。</translation>
    </message>
    <message>
        <source>Estimating…</source>
        <translation>正在估计…</translation>
    </message>
    <message>
        <source>Two training steps are traced without the card.</source>
        <translation>正在不用显卡追踪两个训练步。</translation>
    </message>
    <message>
        <source>This cannot be run as it is</source>
        <translation>按现在的设置无法训练</translation>
    </message>
    <message>
        <source>Fits, {0} to spare</source>
        <translation>放得下，余量 {0}</translation>
    </message>
    <message>
        <source>Tight: fits with a probability of {0}</source>
        <translation>勉强：放得下的概率为 {0}</translation>
    </message>
    <message>
        <source>Whether it fits cannot be said before it runs</source>
        <translation>运行之前无法判断是否放得下</translation>
    </message>
    <message>
        <source>Does not fit: needs {0}, the card has room for {1}</source>
        <translation>放不下：需要 {0}，显卡只能给 {1}</translation>
    </message>
    <message>
        <source>A part of the model cannot be traced without the card.</source>
        <translation>模型有一部分离开显卡无法追踪。</translation>
    </message>
    <message>
        <source>{0} cannot be traced without the card.</source>
        <translation>{0} 离开显卡无法追踪。</translation>
    </message>
    <message>
        <source>Peak before the first step: {0} of {1}, {2}.</source>
        <translation>首步之前估计峰值 {0}，可用 {1}，出现在{2}。</translation>
    </message>
    <message>
        <source>The largest batch is being searched.</source>
        <translation>正在搜索最大批量。</translation>
    </message>
    <message>
        <source>Not even a batch of one fits.</source>
        <translation>批量为 1 也放不下。</translation>
    </message>
    <message>
        <source>The largest batch could not be found.</source>
        <translation>没能找出最大批量。</translation>
    </message>
    <message>
        <source>All {0} training samples fit into one batch.</source>
        <translation>全部 {0} 个训练样本都放得进一个批次。</translation>
    </message>
    <message>
        <source>A batch of {0} fits, larger ones perhaps.</source>
        <translation>批量 {0} 放得下，更大的也许可以。</translation>
    </message>
    <message>
        <source>Largest batch that fits: {0}.</source>
        <translation>放得下的最大批量：{0}。</translation>
    </message>
    <message>
        <source>Preparing</source>
        <translation>正在准备</translation>
    </message>
    <message>
        <source>Reading the data of {0} and tracing the model.</source>
        <translation>正在读取 {0} 的数据并追踪模型。</translation>
    </message>
    <message>
        <source>Running. The forecast begins with the first steps</source>
        <translation>正在训练，最初几步之后开始预测</translation>
    </message>
    <message>
        <source>Running on the CPU, without a card to fill</source>
        <translation>正在 CPU 上训练，不占用显存</translation>
    </message>
    <message>
        <source>Flood mark {0} of {1}.</source>
        <translation>水位线 {0}，容量 {1}。</translation>
    </message>
    <message>
        <source>Step {0}, epoch {1} of {2}.</source>
        <translation>第 {0} 步，第 {1} / {2} 轮。</translation>
    </message>
    <message>
        <source>Paused at step {0}</source>
        <translation>已暂停于第 {0} 步</translation>
    </message>
    <message>
        <source>Resume goes on with the same next batch.</source>
        <translation>继续时从同一个下一批次接着训练。</translation>
    </message>
    <message>
        <source>{0} of the card stay occupied. Resume goes on with the same next batch.</source>
        <translation>仍占用显存 {0}。继续时从同一个下一批次接着训练。</translation>
    </message>
    <message>
        <source>Pausing</source>
        <translation>正在暂停</translation>
    </message>
    <message>
        <source>Stopping</source>
        <translation>正在停止</translation>
    </message>
    <message>
        <source>Pausing: waits for step {0}</source>
        <translation>正在暂停：等待第 {0} 步</translation>
    </message>
    <message>
        <source>Stopping: waits for step {0}</source>
        <translation>正在停止：等待第 {0} 步</translation>
    </message>
    <message>
        <source>The step under way is finished first, so that nothing is lost.</source>
        <translation>先完成当前这一步，不丢失任何进度。</translation>
    </message>
    <message>
        <source>Finished after {0}</source>
        <translation>训练完成，用时 {0}</translation>
    </message>
    <message>
        <source>Finished: {0} after {1}</source>
        <translation>训练完成：{0}，用时 {1}</translation>
    </message>
    <message>
        <source>No checkpoint was saved.</source>
        <translation>没有保存检查点。</translation>
    </message>
    <message>
        <source>Checkpoint: {0}</source>
        <translation>检查点：{0}</translation>
    </message>
    <message>
        <source>Stopped at step {0} after {1}</source>
        <translation>已停止于第 {0} 步，用时 {1}</translation>
    </message>
    <message>
        <source>The run has failed</source>
        <translation>训练失败</translation>
    </message>
    <message>
        <source>Out of memory at step {0}, {1}</source>
        <translation>第 {0} 步{1}显存不足</translation>
    </message>
    <message>
        <source>The card was full. Its memory is free again; the window goes on.</source>
        <translation>显卡曾被占满。显存已释放，窗口照常工作。</translation>
    </message>
    <message>
        <source>{0} were asked for and not there. The memory is free again; the window goes on.</source>
        <translation>申请 {0} 时已无空间。显存已释放，窗口照常工作。</translation>
    </message>
    <message>
        <source>Out of memory at step {0}; goes on with validation batches of {1}</source>
        <translation>第 {0} 步显存不足，以验证批量 {1} 继续</translation>
    </message>
    <message>
        <source>Out of memory at step {0}; saves by way of main memory and goes on</source>
        <translation>第 {0} 步显存不足，改经内存保存并继续</translation>
    </message>
    <message>
        <source>Out of memory at step {0}; goes on, with parameters updated one by one</source>
        <translation>第 {0} 步显存不足，改为逐个更新参数并继续</translation>
    </message>
    <message>
        <source>Out of memory at step {0}; goes on with micro-batch {1}</source>
        <translation>第 {0} 步显存不足，以微批量 {1} 继续</translation>
    </message>
    <message>
        <source>The step was done again from the last good state; the batch is as large as before.</source>
        <translation>已从最后的完好状态重做这一步，批量不变。</translation>
    </message>
    <message>
        <source>{0} were asked for and not there.</source>
        <translation>请求的 {0} 无法满足。</translation>
    </message>
    <message>
        <source>{0}.</source>
        <translation>{0}。</translation>
    </message>
    <message>
        <source>Ignored: {0}</source>
        <translation>已忽略：{0}</translation>
    </message>
</context>
<context>
    <name>VerdictBanner</name>
    <message>
        <source>Why</source>
        <translation>原因</translation>
    </message>
    <message>
        <source>Ignore</source>
        <translation>忽略</translation>
    </message>
</context>
<context>
    <name>Xid</name>
    <message>
        <source>the GPU stopped processing</source>
        <translation>GPU 停止处理</translation>
    </message>
    <message>
        <source>a kernel failed</source>
        <translation>内核出错</translation>
    </message>
    <message>
        <source>illegal memory access</source>
        <translation>非法显存访问</translation>
    </message>
    <message>
        <source>bad command stream</source>
        <translation>命令流损坏</translation>
    </message>
    <message>
        <source>a program was stopped</source>
        <translation>程序被停止</translation>
    </message>
    <message>
        <source>work was cleaned up</source>
        <translation>任务被清理</translation>
    </message>
    <message>
        <source>memory error, not correctable</source>
        <translation>显存错误，无法纠正</translation>
    </message>
    <message>
        <source>internal controller halted</source>
        <translation>内部控制器停机</translation>
    </message>
    <message>
        <source>bad memory was put aside</source>
        <translation>坏显存已隔离</translation>
    </message>
    <message>
        <source>bad memory could not be put aside</source>
        <translation>坏显存无法隔离</translation>
    </message>
    <message>
        <source>NVLink error</source>
        <translation>NVLink 错误</translation>
    </message>
    <message>
        <source>the GPU has fallen off the bus</source>
        <translation>GPU 已从总线掉线</translation>
    </message>
    <message>
        <source>many corrected memory errors</source>
        <translation>大量已纠正的显存错误</translation>
    </message>
    <message>
        <source>memory error, contained</source>
        <translation>显存错误，已隔离</translation>
    </message>
    <message>
        <source>memory error, not contained</source>
        <translation>显存错误，未能隔离</translation>
    </message>
    <message>
        <source>the GPU&apos;s firmware does not answer</source>
        <translation>GPU 固件无响应</translation>
    </message>
    <message>
        <source>the GPU&apos;s firmware failed</source>
        <translation>GPU 固件出错</translation>
    </message>
    <message>
        <source>Start the run again; other programs are not affected.</source>
        <translation>重新开始训练即可；其他程序不受影响。</translation>
    </message>
    <message>
        <source>Save what can be saved, then reset the GPU (nvidia-smi --gpu-reset) or restart the computer.</source>
        <translation>先保存能保存的内容，再复位 GPU（nvidia-smi --gpu-reset）或重启计算机。</translation>
    </message>
    <message>
        <source>A piece of work did not end in time, and the driver gave it up.</source>
        <translation>有任务未能按时结束，驱动已将其放弃。</translation>
    </message>
    <message>
        <source>A kernel did something illegal, such as an index out of range. Seldom the hardware.</source>
        <translation>内核有非法操作，例如索引越界。很少是硬件问题。</translation>
    </message>
    <message>
        <source>Look for the traceback of the run; CUDA_LAUNCH_BLOCKING=1 names the operation.</source>
        <translation>请查看训练的回溯信息；CUDA_LAUNCH_BLOCKING=1 可指出具体算子。</translation>
    </message>
    <message>
        <source>A program used GPU memory that is not its own. Mostly a mistake in a kernel.</source>
        <translation>程序访问了不属于它的显存。多为内核中的错误。</translation>
    </message>
    <message>
        <source>The commands that reached the GPU were damaged: driver, PCIe or RAM.</source>
        <translation>到达 GPU 的命令已损坏：可能是驱动、PCIe 或内存的问题。</translation>
    </message>
    <message>
        <source>If it comes again, check the PCIe seat of the card and the computer&apos;s RAM.</source>
        <translation>若再次出现，请检查显卡的 PCIe 插接和计算机内存。</translation>
    </message>
    <message>
        <source>A program made an error and its work on the GPU was stopped. The GPU is well.</source>
        <translation>程序出错，其 GPU 任务已停止。GPU 本身正常。</translation>
    </message>
    <message>
        <source>Work was thrown away because its program ended or after an error before. A consequence, no cause.</source>
        <translation>因程序结束或此前的错误，任务被丢弃。这是后果，不是原因。</translation>
    </message>
    <message>
        <source>Look for the error before it, if the end was not wanted.</source>
        <translation>若非有意结束，请查看在它之前的错误。</translation>
    </message>
    <message>
        <source>Two bits of one word were wrong; results may be, too.</source>
        <translation>一个字中有两位出错；结果也可能有误。</translation>
    </message>
    <message>
        <source>A small processor inside the GPU stopped with a warning.</source>
        <translation>GPU 内部的小处理器停机并给出警告。</translation>
    </message>
    <message>
        <source>A small processor inside the GPU halted. Heat or overclocking can be the cause.</source>
        <translation>GPU 内部的小处理器停机。可能因过热或超频。</translation>
    </message>
    <message>
        <source>The GPU replaces a bad row of its memory by a spare one. It goes on.</source>
        <translation>GPU 用备用行替换了损坏的显存行，并继续工作。</translation>
    </message>
    <message>
        <source>It takes effect at the next reset of the GPU; reset it when the run has ended.</source>
        <translation>下次复位 GPU 时生效；请在训练结束后复位。</translation>
    </message>
    <message>
        <source>A bad row of memory could not be replaced: perhaps no spare one is left.</source>
        <translation>损坏的显存行无法替换：可能已没有备用行。</translation>
    </message>
    <message>
        <source>Reset the GPU. If it comes again, the card should be replaced.</source>
        <translation>请复位 GPU。若再次出现，应更换显卡。</translation>
    </message>
    <message>
        <source>The connection to another GPU failed.</source>
        <translation>与另一块 GPU 的连接出错。</translation>
    </message>
    <message>
        <source>Reset the connected GPUs. If it comes again, check the bridge or the board.</source>
        <translation>请复位相连的 GPU。若再次出现，请检查桥接器或主板。</translation>
    </message>
    <message>
        <source>The computer can no longer reach the card: power, heat, slot, or the card itself.</source>
        <translation>计算机已无法访问显卡：可能是供电、温度、插槽或显卡本身的问题。</translation>
    </message>
    <message>
        <source>Restart the computer. If it comes again, check power cables, cooling and the slot.</source>
        <translation>请重启计算机。若再次出现，请检查供电线、散热和插槽。</translation>
    </message>
    <message>
        <source>The memory corrects single bits unusually often. Results are right.</source>
        <translation>显存纠正单比特错误异常频繁。结果仍然正确。</translation>
    </message>
    <message>
        <source>Watch the ECC counters; let the card cool.</source>
        <translation>请留意 ECC 计数，并让显卡降温。</translation>
    </message>
    <message>
        <source>A memory error that hit one program only, which was stopped.</source>
        <translation>显存错误只影响一个程序，该程序已被停止。</translation>
    </message>
    <message>
        <source>Start that program again, and reset the GPU when all have ended.</source>
        <translation>请重新启动该程序，并在所有程序结束后复位 GPU。</translation>
    </message>
    <message>
        <source>A memory error that may have hit every program on the GPU.</source>
        <translation>显存错误可能影响了 GPU 上的所有程序。</translation>
    </message>
    <message>
        <source>End all programs on the GPU and reset it. Do not trust what they computed last.</source>
        <translation>请结束 GPU 上的所有程序并复位。不要相信它们最后的计算结果。</translation>
    </message>
    <message>
        <source>The processor on the card that runs the driver&apos;s firmware (GSP) does not answer.</source>
        <translation>显卡上运行驱动固件的处理器（GSP）无响应。</translation>
    </message>
    <message>
        <source>The firmware on the card&apos;s own processor (GSP) had an error.</source>
        <translation>显卡自带处理器（GSP）上的固件出错。</translation>
    </message>
    <message>
        <source>Xid {0}</source>
        <translation>Xid {0}</translation>
    </message>
    <message>
        <source>Xid {0}: {1}</source>
        <translation>Xid {0}：{1}</translation>
    </message>
    <message>
        <source>{0} ({1} times)</source>
        <translation>{0}（{1} 次）</translation>
    </message>
    <message>
        <source>The driver reports an error; NVIDIA&apos;s Xid catalogue has its number.</source>
        <translation>驱动报告了一个错误；编号含义见 NVIDIA 的 Xid 目录。</translation>
    </message>
</context>
</TS>
